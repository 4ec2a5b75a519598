"""Prime numbers, from a source of chance that is handed in.

Used where the library cannot help: for RSA keys of 512 bits, and for keys that a test or a
simulation wants to see again.
"""

from __future__ import annotations

import math
from random import Random
from typing import Final

_SMALL_MAX: Final = 2000
_ROUNDS: Final = 20  # of Miller-Rabin: far below 2**-80 for random numbers of 256 bits or more


def _small_primes(below: int) -> list[int]:
    found: list[int] = []
    for number in range(2, below):
        if all(number % prime for prime in found if prime * prime <= number):
            found.append(number)
    return found


_SMALL: Final = math.prod(_small_primes(_SMALL_MAX))


def make_prime(bits: int, random: Random, exponent: int) -> int:
    """A prime of exactly `bits` bits that goes with a public exponent, which is a prime itself.

    Its two highest bits are set, so that the product of two such primes has twice the bits.
    """
    highest = 3 << (bits - 2)
    while True:
        candidate = random.getrandbits(bits) | highest | 1
        if math.gcd(candidate, _SMALL) != 1 or candidate % exponent == 1:
            continue
        if is_probable_prime(candidate, random):
            return candidate


def is_probable_prime(number: int, random: Random) -> bool:
    """Miller-Rabin with random bases."""
    if number < _SMALL_MAX:
        return number > 1 and all(number % factor for factor in range(2, math.isqrt(number) + 1))
    if not number & 1:
        return False
    odd = number - 1
    twos = (odd & -odd).bit_length() - 1
    odd >>= twos
    return all(_is_no_witness(random.randrange(2, number - 1), odd, twos, number) for _ in _TIMES)


_TIMES: Final = range(_ROUNDS)


def _is_no_witness(base: int, odd: int, twos: int, number: int) -> bool:
    """Whether this base leaves it open that the number is a prime."""
    power = pow(base, odd, number)
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False
