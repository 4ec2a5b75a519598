"""Bytes and values of the MSMQ protocols: no state, no I/O, no clock."""
