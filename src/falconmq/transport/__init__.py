"""The binary protocol between queue managers (MS-MQQB): state machines first, sockets last."""
