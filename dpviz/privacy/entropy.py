"""Sources of random bits: the operating system, or a seed for simulations."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from dpviz.errors import SettingError

Words = NDArray[np.uint64]


class Entropy:
    """A stream of uniform random bits. Each call takes fresh bits, so no two results share any.

    Make one with `Entropy.system()` for anything that is published, or with `Entropy.seeded(seed)` for simulations: anyone who knows
    the seed can recompute the noise and subtract it. A stream cannot be copied or pickled, since the copy would repeat its bits;
    `spawn` gives each worker a stream of its own.

    >>> Entropy.seeded(7).below(10, 5).tolist() == Entropy.seeded(7).below(10, 5).tolist()
    True
    """

    _words: Callable[[int], Words]
    _seeds: np.random.SeedSequence | None

    def __init__(self, *_: object) -> None:
        raise TypeError("make a stream with Entropy.system() or Entropy.seeded(seed)")

    @classmethod
    def _make(cls, words: Callable[[int], Words], seeds: np.random.SeedSequence | None) -> Entropy:
        stream = cls.__new__(cls)
        stream._words, stream._seeds = words, seeds  # noqa: SLF001
        return stream

    @classmethod
    def system(cls) -> Entropy:
        """The operating system's generator: the only source for a release that is published.

        >>> Entropy.system().simulation
        False
        """
        return cls._make(lambda n: np.frombuffer(os.urandom(8 * n), np.uint64), None)

    @classmethod
    def seeded(cls, seed: int) -> Entropy:
        """A repeatable stream for simulations, demonstrations and tests; never for publication.

        Args:
            seed: a whole number of at least 0.

        Raises:
            SettingError: the seed is not such a number.
        """
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise SettingError("A seed must be a whole number of at least 0.")
        return cls._from_seeds(np.random.SeedSequence(int(seed)))

    @classmethod
    def _from_seeds(cls, seeds: np.random.SeedSequence) -> Entropy:
        return cls._make(np.random.SFC64(seeds).random_raw, seeds)

    def interrupted_by(self, check: Callable[[], object]) -> Entropy:
        """Return this stream with a check before each batch of bits; an exception from the check ends the release that takes them.

        The bits are the same, and taken from this stream: use only the returned one from here on.
        """

        def words(n: int) -> Words:
            check()
            return self._words(n)

        return self._make(words, self._seeds)

    @property
    def simulation(self) -> bool:
        """Whether the stream is seeded, so that a release with its noise is not private."""
        return self._seeds is not None

    def spawn(self, n: int) -> list[Entropy]:
        """`n` independent streams, for workers or repetitions. Calling it again gives other streams."""
        if self._seeds is None:
            return [Entropy.system() for _ in range(n)]
        return [self._from_seeds(child) for child in self._seeds.spawn(n)]

    def words(self, n: int) -> Words:
        """(n,) independent uniform 64-bit words."""
        return self._words(n)

    def bits(self, n: int) -> NDArray[np.bool_]:
        """(n,) independent fair coins."""
        return np.unpackbits(self._words((n + 63) // 64).view(np.uint8), count=n).view(np.bool_)

    def bytes(self, n: int) -> bytes:
        """`n` random bytes, for example a key for contribution bounding."""
        return self._words((n + 7) // 8).tobytes()[:n]

    def below(self, bound: int, n: int) -> NDArray[np.int64]:
        """(n,) independent uniform whole numbers from 0 to `bound` - 1, without modulo bias.

        Args:
            bound: 1 to 2**63.
            n: how many numbers.

        Raises:
            ValueError: `bound` is out of range.
        """
        if not 1 <= bound <= 2**63:
            raise ValueError("bound must be from 1 to 2**63")
        shift = np.uint64(min(63, 64 - (bound - 1).bit_length()))  # at most 63, since a shift by all 64 bits is not defined
        largest = np.uint64(bound - 1)
        values = self.words(n) >> shift
        while (rejected := np.flatnonzero(values > largest)).size:
            values[rejected] = self.words(rejected.size) >> shift
        return values.astype(np.int64)

    def below_each(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) independent uniform whole numbers, the i-th from 0 to bounds[i] - 1, without modulo bias.

        Args:
            bounds: (n,) upper bounds, from 1 to 2**62.

        Raises:
            ValueError: a bound is out of range.
        """
        if len(bounds) and not 1 <= bounds.min() <= bounds.max() <= 2**62:
            raise ValueError("bounds must be from 1 to 2**62")
        bit_lengths = np.frexp((bounds - 1).astype(np.float64))[1].astype(np.int64)
        shift = np.minimum(63, 64 - bit_lengths).astype(np.uint64)
        values = (self.words(len(bounds)) >> shift).astype(np.int64)
        while (rejected := np.flatnonzero(values >= bounds)).size:
            values[rejected] = (self.words(rejected.size) >> shift[rejected]).astype(np.int64)
        return values

    def __copy__(self) -> NoReturn:
        raise TypeError("an Entropy stream cannot be copied: the copy would repeat its bits; use spawn(n)")

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise TypeError("an Entropy stream cannot be pickled: the copy would repeat its bits; use spawn(n)")

    def __repr__(self) -> str:
        return "Entropy.seeded(...): simulation, not private" if self.simulation else "Entropy.system()"


def require_entropy(entropy: object) -> Entropy:
    """Return the stream itself.

    Raises:
        SettingError: anything else, such as a seed; the text says what to write.
    """
    if isinstance(entropy, Entropy):
        return entropy
    seed = f"{entropy}" if isinstance(entropy, int) and not isinstance(entropy, bool) and entropy >= 0 else "7"
    raise SettingError(
        f"Noise needs a stream: dv.Entropy.seeded({seed}) repeats it for simulations; dv.Entropy.system() is for publication."
    )
