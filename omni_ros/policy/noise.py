# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The noise a chunk is drawn from, as a pure function of a seed and the observation's stamp.

A recorded chunk names both, so its actions can be computed again: on another machine, with
another NumPy, in another order. NumPy promises the raw stream of Philox for good, but neither the
stream of its normal variates nor the last bit of its logarithm; so the step from bits to normals
is done here with nothing but operations that IEEE 754 rounds in one way.
"""

from __future__ import annotations

import numpy as np

# Quantile function of the normal distribution: algorithm AS 241 (PPND16) of Wichura, Applied
# Statistics 37 (1988), relative error about 1e-16. Coefficients from the highest power down.
_CENTRE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
     4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
     1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
     2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
     4.2313330701600911252e1, 1.0),
)
_NEAR = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
     4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
     2.05319162663775882187e0, 1.0),
)
_FAR = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
     5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0),
)
_LOG_2 = 0.6931471805599453

#: Values made at a time: a dozen scratch arrays of this length stay small.
_BLOCK = 256


def noise(shape: tuple[int, ...], *, seed: int, stamp_ns: int) -> np.ndarray:
    """Return standard normal noise f32 [*shape], the same for the same seed and stamp anywhere.

    :param seed: 0 .. 2**64 - 1. :param stamp_ns: stamp of the observation, 0 .. 2**63 - 1.
    :raises TypeError: either is no integer. :raises ValueError: it is out of range.
    """
    return fill_noise(np.empty(shape, np.float32), seed=seed, stamp_ns=stamp_ns)


def fill_noise(out: np.ndarray, *, seed: int, stamp_ns: int) -> np.ndarray:
    """Write the noise of :func:`noise` to `out`, f32 of any shape, in C order; return it."""
    for name, value, limit in (("seed", seed, 2**64), ("stamp_ns", stamp_ns, 2**63)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name} is {value!r}; expected an integer from 0 to {limit - 1}")
        if not 0 <= value < limit:
            raise ValueError(f"{name} is {value}; expected an integer from 0 to {limit - 1}")
    if out.dtype != np.float32:
        raise ValueError(f"noise output is {out.dtype}; expected float32")
    key = np.array([int(seed), int(stamp_ns)], dtype=np.uint64)
    bits = np.random.Philox(key=key).random_raw(out.size)
    values = np.empty(out.size, np.float32)
    for start in range(0, out.size, _BLOCK):
        values[start:start + _BLOCK] = _normal(bits[start:start + _BLOCK])
    out[...] = values.reshape(out.shape)
    return out


def _normal(bits: np.ndarray) -> np.ndarray:
    """64-bit words to standard normals, f64; every operation exactly rounded."""
    # 52 bits and a half: never 0 or 1, symmetric about 0.5, exact in float64.
    share = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    offset = share - 0.5
    result = offset * _ratio(_CENTRE, 0.180625 - offset * offset)
    tail = np.flatnonzero(np.abs(offset) > 0.425)
    edge = offset[tail]
    radius = np.sqrt(-_log(np.minimum(share[tail], 1.0 - share[tail])))
    value = np.where(radius <= 5.0, _ratio(_NEAR, radius - 1.6), _ratio(_FAR, radius - 5.0))
    result[tail] = np.where(edge < 0.0, -value, value)
    return result


def _ratio(coefficients: tuple, x: np.ndarray) -> np.ndarray:
    upper, lower = (np.full_like(x, side[0]) for side in coefficients)
    for above, below in zip(coefficients[0][1:], coefficients[1][1:], strict=True):
        upper = upper * x + above  # two roundings each: NumPy never fuses across calls
        lower = lower * x + below
    return upper / lower


def _log(x: np.ndarray) -> np.ndarray:
    """Natural logarithm, from 2 artanh((m - 1) / (m + 1)) with m in [0.7, 1.41]."""
    mantissa, exponent = np.frexp(x)
    low = mantissa < 0.7071067811865476
    mantissa = np.where(low, 2.0 * mantissa, mantissa)
    exponent = np.where(low, exponent - 1, exponent)
    z = (mantissa - 1.0) / (mantissa + 1.0)
    square = z * z
    series = np.full_like(z, 1.0 / 25.0)
    for odd in range(23, 0, -2):
        series = series * square + 1.0 / odd
    return 2.0 * z * series + exponent * _LOG_2
