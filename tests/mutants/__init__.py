"""Mutants of the library: plausible mistakes, planted one by one to see what the tests find.

``make mutants`` plants them all and writes the counts to ``results/mutants.json``.
"""
