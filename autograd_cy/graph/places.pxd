# Places: how to read what a container holds, and to compare values, without running code of the user's. The C interface.
#
# Relies on CPython's public structures. watch.pyx relies on it.

from cpython.object cimport PyObject

from autograd_cy.engine.object cimport PyTypeObject

cdef extern from *:
    """
    /* The attributes of an instance without asking for its __dict__, which would slow every later access down (16 ns each in
       CPython 3.11). How they lie in memory is CPython's own business: only 3.11's way is known here; elsewhere names are
       looked up. */
    #if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000 && !defined(PYPY_VERSION)
    #define AG_INLINE_VALUES 1
    static CYTHON_INLINE PyObject** ag_inline_values(PyObject* o) {
        return (Py_TYPE(o)->tp_flags & Py_TPFLAGS_MANAGED_DICT) ? ((PyObject***) o)[-4] : NULL;
    }
    static CYTHON_INLINE int ag_inline_count(PyObject** values) { return ((unsigned char*) values)[-2]; }
    static CYTHON_INLINE int ag_inline_index(PyObject** values, int i) { return ((unsigned char*) values)[-3 - i]; }
    #define ag_dict_version(d) ((unsigned long long) ((PyDictObject*) (d))->ma_version_tag)
    #else
    #define AG_INLINE_VALUES 0
    #define ag_inline_values(o) ((PyObject**) NULL)
    #define ag_inline_count(values) 0
    #define ag_inline_index(values, i) 0
    #define ag_dict_version(d) 0ULL          /* deprecated from 3.12 on */
    #endif
    #define ag_version_tag(t) ((unsigned long long) ((PyTypeObject*) (t))->tp_version_tag)
    #define ag_type_is_heap(t) ((((PyTypeObject*) (t))->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0)
    #define ag_descr_get(t) (((PyTypeObject*) (t))->tp_descr_get != NULL)
    #define ag_descr_set(t) (((PyTypeObject*) (t))->tp_descr_set != NULL)
    #define ag_is_property(o) (Py_TYPE((PyObject*) (o)) == &PyProperty_Type)
    #define ag_closure(f) (((PyFunctionObject*) (f))->func_closure)
    #define ag_code(f) (((PyFunctionObject*) (f))->func_code)
    #define ag_defaults(f) (((PyFunctionObject*) (f))->func_defaults)
    #define ag_kwdefaults(f) (((PyFunctionObject*) (f))->func_kwdefaults)
    #define ag_cell(closure, i) PyCell_GET(PyTuple_GET_ITEM(closure, i))
    #define ag_list_items(o) (((PyListObject*) (o))->ob_item)
    #define ag_refs(o) Py_REFCNT(o)
    PyAPI_FUNC(PyObject*) _PyType_Lookup(PyTypeObject*, PyObject*);
    PyAPI_FUNC(PyObject*) _PyObject_GenericGetAttrWithDict(PyObject*, PyObject*, PyObject*, int);
    PyAPI_FUNC(PyObject**) _PyObject_GetDictPtr(PyObject*);
    """
    const bint AG_INLINE_VALUES
    PyObject** ag_inline_values(PyObject* o) noexcept
    int ag_inline_count(PyObject** values) noexcept
    int ag_inline_index(PyObject** values, int i) noexcept
    unsigned long long ag_dict_version(PyObject* d) noexcept
    unsigned long long ag_version_tag(PyObject* t) noexcept
    bint ag_type_is_heap(PyTypeObject* t) noexcept
    bint ag_descr_get(PyTypeObject* t) noexcept
    bint ag_descr_set(PyTypeObject* t) noexcept
    bint ag_is_property(PyObject* o) noexcept
    PyObject* ag_closure(PyObject* f) noexcept
    PyObject* ag_code(PyObject* f) noexcept
    PyObject* ag_defaults(PyObject* f) noexcept
    PyObject* ag_kwdefaults(PyObject* f) noexcept
    PyObject* ag_cell(PyObject* closure, Py_ssize_t i) noexcept
    PyObject** ag_list_items(PyObject* o) noexcept
    Py_ssize_t ag_refs(PyObject* o) noexcept
    PyObject* _PyType_Lookup(PyTypeObject* t, PyObject* name) noexcept
    PyObject* _PyObject_GenericGetAttrWithDict(PyObject* o, PyObject* name, PyObject* d, int suppress) noexcept
    PyObject** _PyObject_GetDictPtr(PyObject* o) noexcept
    object PyObject_GenericGetDict(object o, void* context)
    Py_ssize_t Py_SIZE(PyObject* o) noexcept
    PyObject* PyDict_GetItemWithError(PyObject* d, PyObject* k) noexcept
    Py_ssize_t PyDict_Size(PyObject* d) noexcept
    int PyDict_Next(PyObject* d, Py_ssize_t* position, PyObject** k, PyObject** value) noexcept
    void PyErr_Clear() noexcept

# The kinds of records.
cdef enum Kind:
    CELLS                 # of a function: the contents of its closure
    FUNCTION              # of a function: code, defaults, keyword-only defaults
    KEYS                  # of a dict: some keys
    FLAGS                 # of a dict: some keys, of which only the truth matters (options that choose among kernels)
    DICT                  # of a dict: everything, in order
    ATTRS                 # of an instance: some attributes, found without its __dict__
    DICT_OF               # of an instance, function or module: its __dict__
    ITEMS                 # of a list
    TUPLE                 # of a tuple: can't change; only `follow` needs it
    PARTS                 # of a bound method, partial, static method, property: can't change
    SET                   # of a set, in order of iteration
    DEQUE
    TYPE                  # of a class: what some names mean
    TENSOR                # of a tensor: memory, shape, dtype, requires_grad
    BUFFER                # of a small array: its contents

cdef PyObject* attribute(PyObject* o, PyObject* name) noexcept
cdef bint same_set(a, b) except -1
cdef bint same_truth(a, b) except -1
cpdef bint same_value(object a, object b) except -1
cdef list read(int kind, object o, list keys)
cpdef list dict_keys(o)
