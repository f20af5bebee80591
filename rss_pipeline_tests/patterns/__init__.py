"""Regular expressions that read what publishers and strangers send: twice the text takes twice the time.

`collected.py` finds them by import, `adversaries.py` derives texts from each that cost it most, `measure.py`
runs them in a process that can be ended: a pattern that hangs holds its interpreter.
"""
