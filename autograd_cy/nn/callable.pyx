# Callable: the base of Module in C, through which a call of a module reaches `__call__` of its class.
#
# Relies on CPython's vectorcall protocol and its cache of methods only. calling.py and module.py rely on it.
#
# Python's own way from `net(x)` to a method makes a tuple of the arguments and an array of them with `net` in front: 30 ns, for every
# module of a model. Here `net` is put in front of the arguments where they lie. What is called is looked up in the class each time, so
# that a `__call__` may be assigned at any time.

cimport cython

cdef extern from *:
    """
    PyAPI_FUNC(PyObject*) _PyType_Lookup(PyTypeObject*, PyObject*);

    typedef struct { PyObject_HEAD vectorcallfunc vectorcall; } ag_callable;
    #define AG_FEW 8
    static struct { unsigned int version; PyObject* found; } ag_known[16];      /* by the version of the class */
    static PyObject* ag_call_name;
    static PyObject* ag_no_arguments;

    static PyObject* ag_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
        PyObject* f;
        PyObject* result;
        PyObject* kept;
        PyObject* few[AG_FEW];
        PyObject** all;
        descrgetfunc get;
        Py_ssize_t n = PyVectorcall_NARGS(nargsf), total = n + (names ? PyTuple_GET_SIZE(names) : 0), i;
        unsigned int version = Py_TYPE(self)->tp_version_tag;
        if (version && ag_known[version & 15].version == version) f = ag_known[version & 15].found;
        else {
            f = _PyType_Lookup(Py_TYPE(self), ag_call_name);
            version = Py_TYPE(self)->tp_version_tag;
            ag_known[version & 15].version = f ? version : 0;
            ag_known[version & 15].found = f;
        }
        if (f == NULL) {
            PyErr_Format(PyExc_TypeError, "'%.200s' object is not callable", Py_TYPE(self)->tp_name);
            return NULL;
        }
        Py_INCREF(f);
        if (PyType_HasFeature(Py_TYPE(f), Py_TPFLAGS_METHOD_DESCRIPTOR)) {
            if (nargsf & PY_VECTORCALL_ARGUMENTS_OFFSET) {          /* the place in front of the arguments is ours to use */
                all = (PyObject**) args - 1;
                kept = *all;
                *all = self;
                result = PyObject_Vectorcall(f, all, n + 1, names);
                *all = kept;
            } else {
                all = total < AG_FEW ? few : (PyObject**) PyMem_Malloc((total + 1) * sizeof(PyObject*));
                if (all == NULL) {
                    Py_DECREF(f);
                    return PyErr_NoMemory();
                }
                all[0] = self;
                for (i = 0; i < total; i++) all[i + 1] = args[i];
                result = PyObject_Vectorcall(f, all, n + 1, names);
                if (all != few) PyMem_Free(all);
            }
        } else {
            get = Py_TYPE(f)->tp_descr_get;
            if (get != NULL) {
                kept = get(f, self, (PyObject*) Py_TYPE(self));
                Py_DECREF(f);
                if (kept == NULL) return NULL;
                f = kept;
            }
            result = PyObject_Vectorcall(f, args, nargsf, names);
        }
        Py_DECREF(f);
        return result;
    }

    static PyObject* ag_callable_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
        PyObject* o = PyBaseObject_Type.tp_new(type, ag_no_arguments, NULL);      /* it prepares the attributes */
        (void) args; (void) kwargs;
        if (o != NULL) ((ag_callable*) o)->vectorcall = ag_call;
        return o;
    }

    static int ag_callable_ready(PyObject* type) {
        PyTypeObject* t = (PyTypeObject*) type;
        ag_call_name = PyUnicode_InternFromString("__call__");
        ag_no_arguments = PyTuple_New(0);
        if (ag_call_name == NULL || ag_no_arguments == NULL) return -1;
        t->tp_new = ag_callable_new;
        t->tp_vectorcall_offset = offsetof(ag_callable, vectorcall);
        t->tp_vectorcall = NULL;              /* else a call of the type goes round tp_new */
        PyType_Modified(t);
        return 0;
    }

    static void ag_call_directly(PyObject* type) {
        PyTypeObject* t = (PyTypeObject*) type;
        if (t->tp_vectorcall_offset == offsetof(ag_callable, vectorcall)) t->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    }
    """
    int ag_callable_ready(object type) except -1
    void ag_call_directly(object type) noexcept


@cython.auto_pickle(False)                    # the pointer belongs to the process
cdef class Callable:
    """The base of Module in C."""

    cdef void* vectorcall


ag_callable_ready(Callable)


def call_directly(cls):
    """Let calls of the instances of a class go through its base in C; to be said anew when `__call__` was assigned."""
    ag_call_directly(cls)
