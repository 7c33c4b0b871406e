# Watch: whether the values that a function could read are still what they were. The C interface.
#
# Relies on CPython's public structures. guards.Snapshot derives from Watch; a compiled step asks `same` before every replay.

from cpython.object cimport PyObject

from autograd_cy.engine.object cimport PyTypeObject

cdef struct Record:           # what is watched of one container
    int kind
    int slot                  # the container
    int start                 # its first place
    int n                     # how many places
    Py_ssize_t size           # entries of a dict to which names may be added; -1: don't care
    PyObject* container
    PyTypeObject* type        # of the container
    unsigned long long version    # of a dict or type whose places were all right; 0: unknown
    void* more                # Inline or TensorSeen

cdef class Deaths:
    cdef bint any

cdef class Watch:
    cdef Record* records
    cdef int n_records, room_records
    cdef PyObject** expected      # by place: what was there; NULL: nothing
    cdef PyObject** key           # by place, owned by `keys`
    cdef int* child               # by place: slot of the object; -1: a plain value
    cdef int n_places, room_places
    cdef readonly list objects    # by slot: the object, or a weak reference to it
    cdef readonly list weak       # by slot: whether it is a weak reference
    cdef list class_names         # by slot
    cdef readonly list values     # by place: the value, if it is plain
    cdef readonly list keys       # by place
    cdef readonly list record_of  # by place
    cdef readonly dict extra      # by record: contents of small buffers
    cdef public object used       # names that code reads; None: any
    cdef Deaths deaths

    cdef bint same(self) except -1
    cdef bint accept(self, Record* r, int i, PyObject* now) except -1
    cdef bint same_part(self, Record* r, int i, PyObject* now) except -1
    cdef bint same_attributes(self, Record* r) except -1
    cdef bint same_keys(self, Record* r) except -1
    cdef bint same_dict(self, Record* r) except -1
    cdef bint same_type(self, Record* r) except -1
    cdef bint same_buffer(self, Record* r) except -1
    cdef bint no_new_names(self, Record* r) except -1
    cdef list new_names(self, Record* r)
    cdef list compare(self, Record* r, list now, list keys, object limit)
    cdef list tensor_differs(self, Record* r, object t)
    cdef int known(self, int number, Py_ssize_t count) except -1
    cpdef object object(self, int slot)
    cpdef object value(self, int place)
