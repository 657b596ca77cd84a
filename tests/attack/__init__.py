"""Attacks on the library: seeded generators of hostile input, bounded in number and time.

Each module attacks one promise. ``make test`` runs a small part of each attack, ``make attack``
runs them whole and writes the counts to ``results/attack.json``.
"""
