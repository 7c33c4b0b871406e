"""Nanoseconds of small recorded calls as a script writes them, by kind, against the bars of each kind; with --peers PyTorch's beside them.

`ops --all` has a line for each row of the table; here are the functions and methods that users call, many of which are no row or several.
x and what else can be differentiated requires a gradient, and the result is freed at once. A call above its bar has a reason in REASONS.
Relies on bench/timing.py and bench/report.py; the command line relies on it.
"""

import gc
import re
import warnings

import numpy as np

import autograd_cy as ag

from . import peers, report, timing

BARS = {"elementwise": 100, "shape": 100, "reduction": 400, "index": 400, "linear algebra": 400}      # ns; the other kinds have none
NOISE = 1.1              # above its bar by less is the noise of minima in one process with all other calls

# Elementwise calls of one form, and every kind's others: over the names that `operands` gives.
FUNCTIONS = {
    "lib.{}(x)": """
        abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac
        isfinite isinf isnan lgamma log log10 log1p log2 logit neg positive rad2deg reciprocal relu round rsqrt sgn sigmoid sign
        signbit sin sinc sinh sqrt square tan tanh trunc nan_to_num cbrt""",
    "special.{}(x)": """
        i0 i0e i1 i1e ndtr ndtri log_ndtr erfcx entr bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1
        modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 airy_ai
        expit psi""",
    "lib.{}(x, a)": """
        add sub mul div maximum minimum fmax fmin fmod remainder floor_divide atan2 hypot copysign logaddexp logaddexp2 xlogy
        ldexp eq ne lt le gt ge isclose heaviside""",
    "F.{}(x)": """
        elu selu celu gelu silu mish relu6 hardtanh hardsigmoid hardswish softplus softsign logsigmoid leaky_relu tanhshrink""",
}
CALLS = {
    "elementwise": """
        x + a; x - a; x * a; x / a; x * 2; 1 - x; 2 / x; -x; x ** 2; x ** 0.5; x ** 2.5; x64 ** 2.5; 2.0 ** x; x ** y; lib.pow(x, a);
        lib.polygamma(1, x); lib.polygamma(2, x); lib.igamma(a, b); special.zeta(x1, a); special.xlog1py(x, a);
        special.multigammaln(x5, 2); F.prelu(x, one); F.threshold(x, 0.2, 0.); lib.where(mask, x, a); lib.where(mask, x, 0.);
        lib.clamp(x, low, high); x.clamp(min=low); x.clamp(0.2, 0.8); x.clamp(max=0.8); lib.lerp(x, a, 0.5); lib.lerp(x, a, b);
        lib.addcmul(x, a, b); lib.addcdiv(x, a, b); lib.add(x, a, alpha=2); x.masked_fill(mask, 0.); x.double(); x.clone();
        plain.add_(a); plain.mul_(1.0); plain.clamp_(0.2, 0.8); plain.copy_(a); plain.fill_(0.5)""",
    "shape": """
        x[1]; x[-1]; x[:, 1]; x[1:3]; x[..., 0]; x[None]; x[:, None]; x[0, 0]; x[1:3, 1:3]; x[1:3, ::2]; x.t(); x.mT; x.view(2, 8);
        x.reshape(2, 8); x.reshape(-1); x.flatten(); x.unflatten(0, (2, 2)); x.permute(1, 0); x.transpose(0, 1); x.movedim(0, 1);
        x.squeeze(); x.unsqueeze(0); x.expand(3, 4, 4); x.expand_as(x); lib.broadcast_to(x, (3, 4, 4)); x.narrow(0, 1, 2);
        x.select(0, 1); x.diagonal(); x.unfold(0, 2, 1); x.as_strided((2, 2), (4, 1)); lib.atleast_3d(x); x.split(2); x.split([1, 3]);
        x.chunk(2); x.unbind(); lib.tensor_split(x, 2); lib.cat([x, a]); lib.cat([x, a], 1); lib.cat((x, a, b)); lib.stack([x, a]);
        lib.hstack([x, a]); lib.vstack([x, a]); lib.dstack([x, a]); F.pad(x, (1, 1)); F.pad(x, (1, 1, 1, 1));
        F.pad(image, (1, 1), mode='reflect'); x.flip(0); lib.flip(x, [0]); lib.roll(x, 1); lib.roll(x, 1, 0); lib.rot90(x);
        x.repeat(2, 2); lib.tile(x, (2,)); x.repeat_interleave(2); x.repeat_interleave(2, 0); x.tril(); x.triu(); x.diag();
        row8.diag(); lib.diag_embed(x); lib.block_diag(x, a); lib.meshgrid(row8, column8, indexing='ij');
        lib.cartesian_prod(row8, column8)""",
    "reduction": """
        x.sum(); x.sum(0); x.sum(1, keepdim=True); x.mean(); x.mean(1); x.nansum(); x.nanmean(); x.prod(); x.prod(1); x.var(1);
        x.std(); lib.var_mean(x, 1); lib.std_mean(x); x.norm(); x.norm(p=1, dim=1); x.norm(p=3); x.norm(p=inf); lib.dist(x, a);
        x.amax(); x.amin(1); lib.aminmax(x); x.max(); x.max(1); x.min(1); x.argmax(); x.argmax(1); x.median(); x.median(1);
        x.nanmedian(); lib.quantile(x, 0.5); lib.quantile(x, 0.5, 1); lib.quantile(x, levels, 1); lib.nanquantile(x, 0.5); x.mode();
        lib.any(mask); lib.all(mask, 1); lib.count_nonzero(a); x.logsumexp(1); x.softmax(1); x.log_softmax(1); x.cumsum(0);
        x.cumprod(1); x.cummax(1); x.cummin(1); x.logcumsumexp(1); x.sort(); x.argsort(); x.topk(2); x.kthvalue(2); x.unique();
        lib.unique(x, return_counts=True); lib.unique(x, return_inverse=True); lib.unique_consecutive(x); lib.bincount(places);
        lib.histc(a, 4); lib.searchsorted(steps, column4); lib.bucketize(column4, steps); lib.isin(places, three); lib.allclose(a, b);
        lib.equal(a, b); lib.diff(x); lib.trapezoid(x); lib.cumulative_trapezoid(x); lib.cov(x); lib.corrcoef(x)""",
    "index": """
        x[three]; x[mask]; x[three, three]; x[:, three]; x[three[:, None], three]; x.gather(1, places44); x.scatter(1, places44, a);
        x.scatter(1, places44, 1.); x.scatter_add(1, places44, a); x.scatter_reduce(1, places44, a, 'sum');
        x.scatter_reduce(1, places44, a, 'mean'); x.scatter_reduce(1, places44, a, 'amax'); x.index_select(0, three);
        x.index_add(0, places, a); x.index_copy(0, places, a); x.index_fill(0, three, 0.); lib.index_put(x, (places, places), row4);
        plain.index_put_((places,), column4); plain.index_put_((places, places), column4, accumulate=True); plain[three] = 0.;
        plain[mask] = 0.; plain[1] = column4; plain[:, 1:3] = 0.; x.put(places, row4); x.take(places);
        lib.take_along_dim(x, places44, 1); x.masked_select(mask); x.masked_scatter(mask, a); lib.select_scatter(x, column4, 0, 1);
        lib.diagonal_scatter(x, column4); lib.slice_scatter(x, a, 0, 0, 4); lib.nonzero(a); lib.nonzero(a, as_tuple=True);
        lib.where(mask); F.one_hot(places); F.one_hot(places, 4); F.embedding(places, table); lib.combinations(column4)""",
    "linear algebra": """
        x @ y; x @ column4; row4 @ row4; lib.mm(x, y); lib.mv(x, column4); lib.bmm(stacked, stacked); lib.dot(row8, column8);
        lib.inner(row8, column8); lib.outer(row8, column8); lib.addmm(a, x, y); lib.addmv(column4, x, column4);
        lib.addr(a, row4, column4); lib.baddbmm(stacked, stacked, stacked); F.linear(x, y, row4); lib.einsum('ij,jk->ik', x, y);
        lib.einsum('ij,ij->', x, y); lib.einsum('bij,bjk->bik', stacked, stacked); lib.tensordot(x, y, 1); lib.kron(x, a);
        lib.trace(x); lib.linalg.cross(rows3, others3); lib.cdist(x, y); F.pdist(x); lib.vander(column4); lib.linalg.norm(x);
        lib.linalg.vector_norm(x); lib.linalg.matrix_norm(x); lib.linalg.matrix_power(x, 3); lib.linalg.inv(x);
        lib.linalg.solve(x, a); lib.linalg.solve_triangular(x, a, upper=True); lib.linalg.det(x); lib.linalg.slogdet(x);
        lib.linalg.cholesky(positive); lib.linalg.qr(x); lib.linalg.eigh(positive); lib.linalg.svd(x); lib.linalg.svdvals(x);
        lib.linalg.pinv(x); lib.linalg.lstsq(x, a); lib.linalg.matrix_rank(x); lib.matrix_exp(x)""",
    "network": """
        F.cosine_similarity(x, y); F.normalize(x); F.conv1d(signal, kernel1); F.conv2d(image, kernel2);
        F.conv2d(image, kernel2, two, padding=1); F.conv3d(volume, kernel3); F.max_pool1d(signal, 2); F.max_pool2d(image, 2);
        F.avg_pool2d(image, 2); F.adaptive_avg_pool2d(image, 1); F.interpolate(image, scale_factor=2);
        F.interpolate(image, scale_factor=2, mode='bilinear'); F.layer_norm(wide, (8,), row8, row8); F.rms_norm(wide, (8,), row8);
        F.group_norm(batch, 3, three_weights, three_weights); F.batch_norm(batch, zeros3, ones3, three_weights, three_weights, True);
        F.batch_norm(batch, zeros3, ones3, three_weights, three_weights); F.instance_norm(batch); F.dropout(x, 0.5); F.mse_loss(x, a);
        F.l1_loss(x, a); F.smooth_l1_loss(x, a); F.cross_entropy(x, classes); F.nll_loss(x, classes); F.binary_cross_entropy(x, a);
        F.binary_cross_entropy_with_logits(x, a); F.kl_div(x, a, reduction='batchmean');
        F.scaled_dot_product_attention(batch, batch, batch); F.unfold(image, 3)""",
    "creation": """
        lib.zeros(4, 4); lib.ones((4, 4)); lib.full((4, 4), 1.); lib.arange(4); lib.linspace(0, 1, 4); lib.eye(4); lib.zeros_like(x);
        lib.rand(4, 4); lib.randn(4, 4); lib.tensor([1., 2.]); lib.tril_indices(4, 4)""",
    "backward": """
        x; (x * a); lib.cat([x, a]); lib.stack([x, y]); x.chunk(2)[0]; x[1:3, ::2]; lib.where(mask, x, 0.); x[three];
        x.gather(1, places44); F.embedding(places, table); F.pad(x, (1, 1)); x.softmax(1); x.std(); x.norm();
        F.layer_norm(wide, (8,), row8, row8); F.batch_norm(batch, zeros3, ones3, three_weights, three_weights, True);
        F.conv2d(image, kernel2, two); F.max_pool2d(image, 2); F.cross_entropy(x, classes); lib.linalg.inv(x)""",
}


def calls():
    """(kind, call), in the order of the table."""
    for kind, text in CALLS.items():
        for call in text.split(";"):
            yield kind, call.strip() + (".sum().backward()" if kind == "backward" else "")
        if kind == "elementwise":
            for form, names in FUNCTIONS.items():
                for name in names.split():
                    yield kind, form.format(name)


# Why a call is above its bar.
FORMULA = "the formula: sixteen elements take most of it"
IN_DOUBLE = "series or polynomials, exponential and logarithm in double whatever the dtype, rounded once"
SLICES = "Python builds the slices and their tuple: 55 ns"
SEVERAL = "several tensors, 27 to 70 ns each"
STEPS = "several recorded operations"
STRIDED = "zeros, and a copy by strides into them"
DECOMPOSITION = "chains of square roots and divisions: LAPACK's drivers take two to five times as long"
REASONS = {
    **dict.fromkeys(["x64 ** 2.5", "lib.polygamma(2, x)", "lib.igamma(a, b)", "special.zeta(x1, a)",
                     "special.multigammaln(x5, 2)", "lib.cbrt(x)", "special.entr(x)"], FORMULA),
    **dict.fromkeys([f"special.{name}(x)" for name in (
        "i0e", "i1e", "log_ndtr", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0",
        "scaled_modified_bessel_k1")], IN_DOUBLE),
    **dict.fromkeys(["x[1:3, 1:3]", "x[1:3, ::2]"], SLICES),
    **dict.fromkeys(["x.split([1, 3])", "x.unbind()", "lib.tensor_split(x, 2)", "lib.meshgrid(row8, column8, indexing='ij')"], SEVERAL),
    **dict.fromkeys(["lib.angle(x)", "lib.ldexp(x, a)", "lib.rot90(x)", "x[three[:, None], three]", "lib.addr(a, row4, column4)",
                     "lib.linalg.matrix_power(x, 3)", "lib.linalg.matrix_norm(x)"], STEPS),
    **dict.fromkeys(["lib.linalg.qr(x)", "lib.linalg.eigh(positive)", "lib.linalg.svd(x)", "lib.linalg.svdvals(x)", "lib.linalg.pinv(x)",
                     "lib.linalg.lstsq(x, a)", "lib.linalg.matrix_rank(x)"], DECOMPOSITION),
    **dict.fromkeys(["row8.diag()", "lib.diag_embed(x)", "lib.block_diag(x, a)"], STRIDED),
    "lib.dstack([x, a])": "the pieces are single elements: 32 of them",
    "lib.index_put(x, (places, places), row4)": "a copy, two indices read and checked, and a node that holds them",
    "lib.einsum('bij,bjk->bik', stacked, stacked)": "three products, and a batch of operands to look at",
    "x.clamp(min=low)": "a choice of three, the upper bound being a number that is laid out first",
    "x.masked_fill(mask, 0.)": "the choice takes 100, and a look whether its dtype is the input's",
    "x.double()": "by the copy for any strides and two dtypes, not by a loop of its own",
    "lib.roll(x, 1, 0)": "two copies by strides", "x.repeat(2, 2)": "four copies by strides",
    "lib.quantile(x, levels, 1)": "two levels of four rows: sorted once, interpolated twice",
    "lib.unique(x, return_inverse=True)": "sorted with its places, and two results",
    "lib.matrix_exp(x)": "scaling, a quotient of polynomials of matrices, a system of equations, squaring",
    "lib.cartesian_prod(row8, column8)": "64 rows of two, not 16 elements; its gradients are sums over the other vector",
    "F.pad(image, (1, 1), mode='reflect')": "its borders are copied column by column",
}


def operands(lib):
    """The names that the calls use; the same numbers for every library."""
    random = np.random.default_rng(0)

    def plain(*shape):
        return lib.tensor(random.uniform(0.1, 0.9, shape).astype(np.float32))

    def leaf(*shape):
        return plain(*shape).requires_grad_()
    half = random.uniform(0.1, 0.9, (4, 4))
    return {
        "lib": lib, "F": lib.nn.functional, "special": lib.special, "inf": float("inf"), "x": leaf(4, 4), "y": leaf(4, 4), "a": plain(4, 4),
        "b": plain(4, 4), "plain": plain(4, 4), "low": plain(4, 4) * 0.1, "high": plain(4, 4) + 1, "mask": plain(4, 4) > 0.5,
        "x64": lib.tensor(half).requires_grad_(), "x1": (plain(4, 4) + 1).requires_grad_(), "x5": (plain(4, 4) + 5).requires_grad_(),
        "positive": lib.tensor((half @ half.T + np.eye(4)).astype(np.float32)).requires_grad_(), "stacked": leaf(3, 4, 4), "one": leaf(1),
        "row4": leaf(4), "row8": leaf(8), "column4": plain(4), "column8": leaf(8), "rows3": leaf(4, 3), "others3": leaf(4, 3),
        "levels": lib.tensor(np.float32([0.25, 0.75])), "steps": lib.tensor(np.arange(8, dtype=np.float32)),
        "three": lib.tensor([0, 2, 1]), "places": lib.tensor([0, 1, 1, 3]), "classes": lib.tensor([0, 2, 1, 3]),
        "places44": lib.tensor(np.arange(16).reshape(4, 4) % 4), "table": leaf(10, 4),
        "image": leaf(1, 1, 8, 8), "kernel2": leaf(2, 1, 3, 3), "two": leaf(2), "signal": leaf(1, 1, 16), "kernel1": leaf(2, 1, 3),
        "volume": leaf(1, 1, 4, 4, 4), "kernel3": leaf(1, 1, 2, 2, 2), "batch": leaf(2, 3, 4, 4), "wide": leaf(4, 8),
        "three_weights": leaf(3), "zeros3": lib.zeros(3), "ones3": lib.ones(3),
    }


def statements(label, names, only):
    """{(kind, call): statement}, for calls that contain one of the texts `only`; without what the library doesn't have."""
    found = {}
    for kind, call in calls():
        if only and not any(text in call or text == kind for text in only):
            continue
        used = set(re.findall(r"[A-Za-z_]\w*", call))
        try:
            found[kind, call] = timing.Statement(call, {name: value for name, value in names.items() if name in used})
        except (AttributeError, RuntimeError, TypeError) as error:
            if label == "autograd_cy":
                raise RuntimeError(f"bench/calls.py: {call}: {error}") from error
    return found


def run(args):
    """Measure, print, and return (results for --json, complaints, data for --plot)."""
    libraries = peers.libraries(ag, args.peers)
    only = [text for text in args.only.split(",") if text]
    best = {}
    gc.collect()
    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured = {label: statements(label, operands(lib), only) for label, lib in libraries.items()}
        overhead = timing.loop_overhead()
        for _ in timing.bar(range(args.rounds), "rounds"):
            for label, found in measured.items():
                for key, statement in found.items():
                    best[label, key] = min(best.get((label, key), 1e99), statement.sample() - overhead)
    gc.enable()
    results, complaints = [], []
    report.heading(f"ns of a small recorded call, minima of {args.rounds} rounds" + ("; PyTorch on one thread" if args.peers else ""))
    lines = []
    for kind, call in measured["autograd_cy"]:
        own, peer = (best.get((label, (kind, call))) for label in ("autograd_cy", "PyTorch"))
        bar = BARS.get(kind)
        reason = ""
        if bar and own > bar * NOISE:
            reason = REASONS.get(call, "NO REASON")
            if call not in REASONS:
                complaints.append(f"{call}: {own:.0f} ns, above the {bar} ns of its kind ({kind}), and no reason in bench/calls.py")
        beside = [report.number(peer), report.number(peer and peer / own)] if args.peers else []
        lines.append([call, kind, bar or "", report.number(own), *beside, reason])
        results += [{"benchmark": "calls", "kind": kind, "call": call, "library": label, "ns": best[label, (kind, call)]}
                    for label in libraries if (label, (kind, call)) in best]
    report.table(["", "kind", "bar", "ns", *(["PyTorch", "times faster"] if args.peers else []), "above, because"], lines)
    return results, complaints, []
