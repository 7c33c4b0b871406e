# What Cython cannot say about the memory of its objects: collectable types with slots of our own.
#
# Relies on CPython's public object and frame functions. node.pyx and tensor.pyx set up their types with it.
#
# Cython's own freelists clear the whole struct, always track with the cyclic collector, and release recursively; nodes and tensors
# must do none of this (FACTS: a 400,000-node chain costs 185 ns per node untracked, 1400 tracked).

from cpython.object cimport PyObject

cdef extern from *:
    """
    #define AG_TYPE(o) Py_TYPE((PyObject*) (o))
    #define ag_own(o) (o)
    /* So many are kept for reuse. */
    #ifdef __SANITIZE_ADDRESS__           /* make asan: none, so that one that is used too late is found */
    enum { MAX_FREE_NODES = 0, MAX_FREE_TENSORS = 0 };
    #else
    enum { MAX_FREE_NODES = 65536, MAX_FREE_TENSORS = 8192 };
    #endif
    static CYTHON_INLINE PyObject* ag_gc_new(PyTypeObject* type) { return _PyObject_GC_New(type); }
    static CYTHON_INLINE PyObject* ag_gc_new_var(PyTypeObject* type, Py_ssize_t n) { return (PyObject*) _PyObject_GC_NewVar(type, n); }
    static CYTHON_INLINE void ag_set_name(PyObject* type, const char* name) { ((PyTypeObject*) type)->tp_name = name; }
    static CYTHON_INLINE void ag_set_itemsize(PyObject* type, Py_ssize_t size) { ((PyTypeObject*) type)->tp_itemsize = size; }
    /* An object that comes out of a free list: its type is still set. */
    #if defined(Py_REF_DEBUG) || defined(Py_TRACE_REFS) || defined(Py_GIL_DISABLED)
    static CYTHON_INLINE void ag_revive(PyObject* o, PyTypeObject* type) { PyObject_Init(o, type); }
    #else
    static CYTHON_INLINE void ag_revive(PyObject* o, PyTypeObject* type) { (void) type; Py_SET_REFCNT(o, 1); }
    #endif
    static CYTHON_INLINE void ag_track(void* o) { if (!PyObject_GC_IsTracked((PyObject*) o)) PyObject_GC_Track(o); }
    static CYTHON_INLINE void ag_untrack(void* o) { PyObject_GC_UnTrack(o); }
    /* Make a Cython type collectable; instances come untracked from ag_gc_new, or tracked from tp_alloc (subclasses). */
    static CYTHON_INLINE void ag_set_slots(PyObject* type, destructor dealloc, traverseproc traverse, inquiry clear,
                                           newfunc make, setattrofunc setattr, Py_ssize_t dict_offset) {
        PyTypeObject* t = (PyTypeObject*) type;
        t->tp_flags |= Py_TPFLAGS_HAVE_GC;
        t->tp_dealloc = dealloc;
        t->tp_traverse = traverse;
        t->tp_clear = clear;
        t->tp_free = PyObject_GC_Del;
        t->tp_new = make;
        t->tp_vectorcall = NULL;              /* else a call of the type goes round tp_new */
        if (make == NULL && PyDict_DelItemString(t->tp_dict, "__new__") < 0) PyErr_Clear();       /* it calls tp_new unseen */
        if (setattr) t->tp_setattro = setattr;
        if (dict_offset) t->tp_dictoffset = dict_offset;
        PyType_Modified(t);
    }
    static CYTHON_INLINE void ag_set_in_type(PyObject* type, PyObject* name, PyObject* value) {
        PyDict_SetItem(((PyTypeObject*) type)->tp_dict, name, value);
        PyType_Modified((PyTypeObject*) type);
    }
    static CYTHON_INLINE PyObject* ag_alloc(PyTypeObject* type) { return type->tp_alloc(type, 0); }
    /* Where CPython 3.11 keeps the attributes of an instance that nobody asked for its __dict__: an array in the order of the keys
       that its class shares. NULL elsewhere, and where there is a dict. */
    #if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000 && !defined(PYPY_VERSION)
    static CYTHON_INLINE PyObject** ag_own_values(PyObject* o) {
        return (Py_TYPE(o)->tp_flags & Py_TPFLAGS_MANAGED_DICT) ? ((PyObject***) o)[-4] : NULL;
    }
    #define ag_own_count(values) (((unsigned char*) (values))[-2])
    #define ag_own_index(values, i) (((unsigned char*) (values))[-3 - (i)])
    #else
    #define ag_own_values(o) ((PyObject**) NULL)
    #define ag_own_count(values) 0
    #define ag_own_index(values, i) 0
    #endif
    #define ag_type_version(o) (Py_TYPE((PyObject*) (o))->tp_version_tag)     /* 0: none */
    /* Whether an attribute of an instance is its own: nothing in the class comes before it. */
    static CYTHON_INLINE int ag_own_comes_first(PyObject* o, PyObject* name) {
        return Py_TYPE(o)->tp_getattro == PyObject_GenericGetAttr && _PyType_Lookup(Py_TYPE(o), name) == NULL;
    }
    /* The code (a new reference) and instruction offset of the innermost frame for whose code `inside` is false; NULL: none. */
    #if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000 && !defined(PYPY_VERSION)
    /* Asking for a frame object makes one, 25 ns for each activation of a function; so CPython 3.11's own frames are read. */
    typedef struct ag_frame {
        PyObject *function, *globals, *builtins, *locals;
        PyCodeObject* code;
        PyObject* object;
        struct ag_frame* previous;
        _Py_CODEUNIT* instruction;
        int stack_top;
        char is_entry, owner;
    } ag_frame;
    static CYTHON_INLINE PyObject* ag_place(int (*inside)(PyObject* code), int* offset) {
        ag_frame* f = (ag_frame*) PyThreadState_Get()->cframe->current_frame;
        for (; f != NULL; f = f->previous) {
            _Py_CODEUNIT* first = (_Py_CODEUNIT*) f->code->co_code_adaptive;
            if (f->owner != 1 && f->instruction < first + f->code->_co_firsttraceable) continue;      /* not yet begun */
            if (inside((PyObject*) f->code)) continue;
            *offset = (int) ((f->instruction - first) * sizeof(_Py_CODEUNIT));
            Py_INCREF(f->code);
            return (PyObject*) f->code;
        }
        return NULL;
    }
    #else
    static PyObject* ag_place(int (*inside)(PyObject* code), int* offset) {
        PyFrameObject* f = PyEval_GetFrame();
        PyFrameObject* outer;
        PyObject* code = NULL;
        Py_XINCREF(f);
        while (f != NULL) {
            code = (PyObject*) PyFrame_GetCode(f);
            if (!inside(code)) {
                *offset = PyFrame_GetLasti(f);
                Py_DECREF(f);
                return code;
            }
            Py_DECREF(code);
            outer = PyFrame_GetBack(f);
            Py_DECREF(f);
            f = outer;
        }
        return NULL;
    }
    #endif
    #define ag_line_of(code, offset) PyCode_Addr2Line((PyCodeObject*) (code), offset)
    static CYTHON_INLINE void ag_free(PyObject* o) { Py_TYPE(o)->tp_free(o); }
    """
    ctypedef struct PyTypeObject:
        pass
    enum:
        MAX_FREE_NODES
        MAX_FREE_TENSORS
    ctypedef int (*visitproc)(PyObject*, void*) noexcept
    PyTypeObject* AG_TYPE(PyObject* o) noexcept
    object own "ag_own" (PyObject* o)                                   # the object of a new reference
    PyObject* ag_gc_new(PyTypeObject* type) except NULL
    PyObject* ag_gc_new_var(PyTypeObject* type, Py_ssize_t n) except NULL
    void ag_set_name(object type, const char* name) noexcept           # a name that lives as long as the process
    void ag_set_itemsize(object type, Py_ssize_t size) noexcept
    PyObject* ag_alloc(PyTypeObject* type) except NULL
    void ag_free(PyObject* o) noexcept
    void ag_revive(PyObject* o, PyTypeObject* type) noexcept
    void ag_track(void* o) noexcept
    void ag_untrack(void* o) noexcept
    void ag_set_slots(object type, void (*dealloc)(PyObject*) noexcept, int (*traverse)(PyObject*, visitproc, void*) noexcept,
                      int (*clear)(PyObject*) noexcept, PyObject* (*make)(PyTypeObject*, PyObject*, PyObject*) noexcept,
                      int (*setattr)(PyObject*, PyObject*, PyObject*) noexcept, Py_ssize_t dict_offset) noexcept
    void ag_set_in_type(object type, object name, object value) noexcept
    void PyObject_GC_Del(void* o) noexcept
    void PyObject_ClearWeakRefs(PyObject* o) noexcept
    int PyObject_GenericSetAttr(PyObject* o, PyObject* name, PyObject* value) noexcept
    int PyType_IsSubtype(PyTypeObject* a, PyTypeObject* b) noexcept
    PyObject** ag_own_values(PyObject* o) noexcept
    int ag_own_count(PyObject** values) noexcept
    int ag_own_index(PyObject** values, int i) noexcept
    unsigned int ag_type_version(PyObject* o) noexcept
    bint ag_own_comes_first(PyObject* o, PyObject* name) noexcept
    PyObject* ag_place(int (*inside)(PyObject*) noexcept, int* offset) noexcept
    int ag_line_of(PyObject* code, int offset) noexcept


# Attributes that are read at every call, by their place: a look-up by name takes 25 ns.
cdef enum:
    KNOWN_PLACES = 8          # of as many classes, by their version

cdef struct Known:
    unsigned int version      # of the class; it changes with every change to the class
    int index

cdef inline object attribute_at(object o, str name, Known* known):
    """o.name; `known` remembers where the instances of a class have it."""
    cdef unsigned int version = ag_type_version(<PyObject*> o)
    cdef Known* k = &known[version & (KNOWN_PLACES - 1)]
    cdef PyObject** values
    if version and k.version == version:
        values = ag_own_values(<PyObject*> o)
        if values != NULL and values[k.index] != NULL:
            return <object> values[k.index]
    return attribute_named(o, name, k)


cdef inline object attribute_named(object o, str name, Known* k):
    cdef object found = getattr(o, name)
    cdef PyObject** values = ag_own_values(<PyObject*> o)
    cdef int i, index = -1, seen = 0
    if values != NULL and ag_own_comes_first(<PyObject*> o, <PyObject*> name):
        for i in range(ag_own_count(values)):
            if values[ag_own_index(values, i)] == <PyObject*> found:
                index = ag_own_index(values, i)
                seen += 1
        if seen == 1:                                # else another attribute shows the same object
            k.version, k.index = ag_type_version(<PyObject*> o), index
    return found
