"""Calls that a replay could not repeat - printing, clocks, random numbers outside the package - noticed while a step is captured.

Relies on sys.setprofile and on codes.  `compile` relies on it: it refuses such a step and names the line.
"""

import dis
import gc
import sys
from types import FunctionType

from .codes import is_library, names_of

# Functions of C whose results or effects are not in the recorded kernels, by module; None: all of them.
IMPURE = {
    "builtins": {"print", "input", "open", "breakpoint", "globals", "exec", "eval"},
    "io": {"open", "open_code"}, "_io": {"open", "open_code"},
    "time": None, "posix": None, "nt": None, "_random": None, "_socket": None, "_posixsubprocess": None, "_thread": {
        "start_new_thread", "start_new", "start_joinable_thread"},
    "sys": {"settrace", "setprofile", "setrecursionlimit", "exit"},
}
_PREFIX = {"builtins": "", "io": "", "_io": "", "posix": "os.", "nt": "os.", "_random": "random."}
_CLOCKS = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")}
_WRITERS = {"write", "writelines", "read", "readline", "readlines", "readinto", "flush"}
_PACKAGE = __name__.partition(".")[0]
_DRAWS = {"rand", "randn", "normal", "uniform", "randint", "choice", "shuffle", "permutation", "integers", "standard_normal",
          "random_sample", "binomial", "poisson", "exponential", "seed", "sample", "beta", "gamma"}
_ENTROPY = {"urandom", "secrets", "SystemRandom", "uuid", "uuid4", "default_rng", "random", "randbits",
            "token_bytes", "token_hex", "token_urlsafe", "getrandbits"}


def _label(function):
    """How an impure function of C is called in code; None for any other."""
    module, name = getattr(function, "__module__", None), function.__name__
    owner = getattr(function, "__self__", None)
    if module in IMPURE:
        allowed = IMPURE[module]
        if allowed is None or name in allowed:
            return _PREFIX.get(module, module + ".") + name
        return None
    if owner is None or type(owner) is type(sys):
        return None
    cls = owner if isinstance(owner, type) else type(owner)
    bases = [base.__module__ for base in type.mro(cls)] if isinstance(cls, type) and cls is not type else []
    if "_random" in bases:
        return f"random.{name}"
    if "_io" in bases and name in _WRITERS:
        return f"{'sys.stdout' if owner is sys.stdout else 'file'}.{name}"
    if "datetime" in bases and (cls.__name__, name) in _CLOCKS:
        return f"{cls.__name__}.{name}"
    return None


def _is_user(frame):
    return not is_library(frame.f_globals.get("__name__", "__main__"))


def _user_frame(frame, outermost):
    """The innermost frame of the user's code; None if this package is nearer, or if a module is being imported."""
    user = None
    while frame is not None and frame is not outermost:
        name = frame.f_globals.get("__name__", "")
        if "importlib" in frame.f_code.co_filename or user is None and name.partition(".")[0] == _PACKAGE:
            return None
        if user is None and not is_library(name):
            user = frame
        frame = frame.f_back
    return user


def user_line():
    """(filename, line, function) of the innermost frame that is not inside this package; None if there is none."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] != _PACKAGE:
            return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back
    return None


def _random_states():
    """The states of the random number generators that Python and NumPy keep for everybody."""
    states = {}
    if "random" in sys.modules:
        states["random"] = sys.modules["random"].getstate()
    shared = getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)
    if shared is not None:
        kind, keys, *rest = shared.get_state()
        states["numpy.random"] = kind, keys.tobytes(), tuple(rest)
    return states


_inside = {}              # id -> code object of this package, whose calls are not the user's


class watch_calls:
    """Notice impure calls, and the user's functions that ran, while the block runs in this thread.

    impure: [(name, filename, line)], each once; executed: [(code object, globals of its module)]. states: look at the states of
    Python's and NumPy's shared random numbers, too (0.1 ms).
    """

    def __init__(self, states=True):
        self._look_at_states = states

    def __enter__(self):
        self.impure, self.executed = [], []
        self._seen, self._codes = set(), {}
        self._states = _random_states() if self._look_at_states else {}
        self._outermost = sys._getframe(0)
        self._collecting = gc.isenabled()
        gc.disable()                     # what a collection calls (gc.callbacks, __del__) is not called by the step
        self._profiled = sys.getprofile() is not None        # a profiler at work is left alone: then calls are not seen
        if not self._profiled:
            sys.setprofile(self._notice)
        return self

    def __exit__(self, *exception):
        if not self._profiled:
            sys.setprofile(None)
        if self._collecting:
            gc.enable()
        for name, state in (_random_states() if self._look_at_states else {}).items():
            if self._states.get(name) != state and not any(label.startswith(name) for label, _, _ in self.impure):
                self._drawn(name, certain=name in self._states)
        self._outermost = None
        self.executed = list(self._codes.values())

    def _notice(self, frame, event, argument):
        code = frame.f_code
        if _inside.get(id(code)) is code:
            return
        if frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
            _inside[id(code)] = code
            return
        if event == "c_call":
            label = _label(argument)
            if label is not None:
                self._add(label, frame)
        elif (event == "call" and id(frame.f_code) not in self._codes and _is_user(frame)
                and _user_frame(frame, self._outermost) is frame):
            self._codes[id(frame.f_code)] = frame.f_code, frame.f_globals

    def _add(self, label, frame):
        user = _user_frame(frame, self._outermost)
        if user is None:
            return
        code = user.f_code
        # This package's generators take their first seed from the system, by Python code whose caller is not seen.
        if label in ("os.urandom", "random.getrandbits") and user is not frame and _ENTROPY.isdisjoint(names_of(code).names):
            return
        found = label, code.co_filename, user.f_lineno
        if found not in self._seen:
            self._seen.add(found)
            self.impure.append(found)

    def _drawn(self, name, certain):
        """Numbers were drawn by a call that profilers don't see (NumPy's aren't functions of C): find the line that did it."""
        codes = [code for code, _ in self._codes.values()]
        for code in codes:
            line = code.co_firstlineno
            for instruction in dis.get_instructions(code):
                line = instruction.starts_line if type(instruction.starts_line) is int else line
                if (instruction.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL") and instruction.argval in _DRAWS
                        or instruction.opname == "LOAD_ATTR" and instruction.argval == "random"):
                    if certain or "random" in code.co_names:
                        self.impure.append((name, code.co_filename, line))
                    return
        if certain:
            code = codes[0] if codes else self._outermost.f_code
            self.impure.append((name, code.co_filename, code.co_firstlineno))

    def extend(self, snapshot):
        """Let a Snapshot watch what the functions that ran read, beyond those it could find by itself."""
        for code, module_globals in self.executed:
            if not snapshot.covers(code):
                functions = [f for f in gc.get_referrers(code) if type(f) is FunctionType and f.__code__ is code] \
                    if code.co_freevars else ()
                snapshot.extend(code, module_globals, functions)
