"""How far apart colours are for all kinds of colour vision, and their contrast."""

import numpy as np

# Machado, Oliveira, Fernandes, IEEE TVCG 2009: what is left of linear RGB without one kind of cone
EYES = {
    "all cones": np.eye(3),
    "no long": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "no middle": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "no short": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])
WHITE = XYZ.sum(axis=1)


def linear(color):
    parts = np.array([int(color[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(color, eyes):
    x, y, z = (
        np.cbrt(part) if part > 216 / 24389 else (24389 / 27 * part + 16) / 116
        for part in XYZ @ np.clip(EYES[eyes] @ linear(color), 0, 1) / WHITE
    )
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def difference(one, other):
    """The smallest difference of two colours over all kinds of colour vision."""
    return min(float(np.linalg.norm(lab(one, eyes) - lab(other, eyes))) for eyes in EYES)


def contrast(one, other):
    dark, light = sorted(float(XYZ[1] @ linear(color)) for color in (one, other))
    return (light + 0.05) / (dark + 0.05)
