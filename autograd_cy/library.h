/* A shared library of many modules: what setup.py writes for each library defines LIBRARY and MODULES and includes this file.
 * It relies on multi-phase initialisation (PEP 489), which Cython's modules have. _libraries.py, which finds the modules, relies on it.
 *
 * MODULES(X) is X("autograd_cy.engine.node", PyInit_autograd_cy__engine__node) and so on. Fifty libraries of their own would each bring
 * tables of the same names of Python's functions, 12 kB, and take 0.1 ms to load.
 */
#include <Python.h>
#include <string.h>

#define AG_PASTE(a, b) a##b
#define AG_INIT(library) AG_PASTE(PyInit_, library)
#define AG_DECLARE(name, init) extern PyObject *init(void);
#define AG_ENTRY(name, init) {name, init},

MODULES(AG_DECLARE)

static const struct { const char *name; PyObject *(*init)(void); } modules[] = { MODULES(AG_ENTRY) };

static PyObject *names(PyObject *self, PyObject *unused) {
    Py_ssize_t n = sizeof modules / sizeof *modules;
    PyObject *result = PyTuple_New(n);
    for (Py_ssize_t i = 0; result && i < n; i++) {
        PyObject *name = PyUnicode_FromString(modules[i].name);
        if (!name) Py_CLEAR(result);
        else PyTuple_SET_ITEM(result, i, name);
    }
    return result;
}

static PyObject *create_module(PyObject *self, PyObject *spec) {
    PyObject *name = PyObject_GetAttrString(spec, "name"), *module = NULL, *definition;
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    for (size_t i = 0; text && i < sizeof modules / sizeof *modules; i++)
        if (!strcmp(text, modules[i].name)) {
            definition = modules[i].init();
            module = definition ? PyModule_FromDefAndSpec((PyModuleDef *)definition, spec) : NULL;
            break;
        }
    if (!module && !PyErr_Occurred()) PyErr_Format(PyExc_ImportError, "no module %R in this library", name);
    Py_XDECREF(name);
    return module;
}

static PyObject *exec_module(PyObject *self, PyObject *module) {
    PyModuleDef *definition = PyModule_Check(module) ? PyModule_GetDef(module) : NULL;
    if (!definition) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "exec_module: expected a module of this library");
        return NULL;
    }
    if (PyModule_ExecDef(module, definition) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"names", names, METH_NOARGS, "The full names of the modules in this library."},
    {"create_module", create_module, METH_O, "The module that a spec names, not yet executed."},
    {"exec_module", exec_module, METH_O, "Executes a module of this library, once."},
    {NULL, NULL, 0, NULL}
};
static PyModuleDef library = { PyModuleDef_HEAD_INIT, .m_name = "autograd_cy library", .m_size = 0, .m_methods = functions };

PyMODINIT_FUNC AG_INIT(LIBRARY)(void) { return PyModule_Create(&library); }
