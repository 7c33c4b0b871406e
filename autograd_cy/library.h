/* A shared library of many modules: what setup.py writes for each library defines LIBRARY and MODULES and includes this file.
 * It relies on multi-phase initialisation (PEP 489), which Cython's modules have. _libraries.py, which finds the modules, relies on it.
 *
 * MODULES(X) is X("autograd_cy._core", PyInit_autograd_cy___core) and so on, MERGED(X) is X("autograd_cy.engine.node", "autograd_cy._core")
 * for each part of a merged module (merging.py). Libraries of their own would each bring tables of the same names of Python's functions,
 * 12 kB, and take 0.1 ms to load.
 */
#include <Python.h>
#include <string.h>

#define AG_PASTE(a, b) a##b
#define AG_INIT(library) AG_PASTE(PyInit_, library)
#define AG_DECLARE(name, init) extern PyObject *init(void);
#define AG_ENTRY(name, init) {name, init},

MODULES(AG_DECLARE)

static const struct { const char *name; PyObject *(*init)(void); } modules[] = { MODULES(AG_ENTRY) };

#define AG_MODULE(name, init) {name, name},
#define AG_PART(part, name) {part, name},
static const struct { const char *part, *module; } parts[] = { MODULES(AG_MODULE) MERGED(AG_PART) };

static PyObject *names(PyObject *self, PyObject *unused) {
    PyObject *result = PyDict_New();
    for (size_t i = 0; result && i < sizeof parts / sizeof *parts; i++) {
        PyObject *module = PyUnicode_FromString(parts[i].module);
        if (!module || PyDict_SetItemString(result, parts[i].part, module) < 0) Py_CLEAR(result);
        Py_XDECREF(module);
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
    {"names", names, METH_NOARGS, "The full names of the modules in this library, and of the parts of merged ones: in which module each is."},
    {"create_module", create_module, METH_O, "The module that a spec names, not yet executed."},
    {"exec_module", exec_module, METH_O, "Executes a module of this library, once."},
    {NULL, NULL, 0, NULL}
};
static PyModuleDef library = { PyModuleDef_HEAD_INIT, .m_name = "autograd_cy library", .m_size = 0, .m_methods = functions };

PyMODINIT_FUNC AG_INIT(LIBRARY)(void) { return PyModule_Create(&library); }
