"""Every number an audit prints, from arrays alone: docs/statistics.md names each with its function and test.

Pure functions and frozen values on numpy. Inputs that break a stated shape or domain raise ValueError; a
number that does not exist is None, with its reason where an estimate carries it.
"""
