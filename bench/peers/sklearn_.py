"""scikit-learn's MLPClassifier on Iris, set to the same loss, batch and step; it always has biases and its own start.

Relies on scikit-learn and on bench.training; the peers' list relies on it. It can't be set to XOR's network.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from ..training import Column


def iris_start(training, dtype):
    x, y, _ = training.arrays(dtype)
    rows = len(x)
    # Targets of several labels give binary cross entropy over sigmoids, divided by the rows: hence lr * rows.
    model = MLPClassifier((10,), activation="logistic", solver="sgd", alpha=0, batch_size=rows, momentum=0, tol=0,
                          learning_rate_init=training.lr * rows, shuffle=False, random_state=0)

    def run(epochs):
        model.set_params(max_iter=epochs, n_iter_no_change=epochs + 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)       # it ran all epochs, as asked
            return model.fit(x, y.astype(np.int64))
    return run


def iris_result(training, model):
    probability = model.predict_proba(training.x)
    right = np.abs(probability - (1 - training.y))
    return float(-np.log(right).sum()), float(np.mean(probability.argmax(1) == training.y.argmax(1)))


COLUMNS = {"iris": [Column("scikit-learn MLPClassifier", iris_start, evaluate=iris_result)]}
