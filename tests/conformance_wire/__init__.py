r"""The protocol as a stranger sees it: bytes on a socket, and a daemon that knows nothing of tests.

How to think about it. Everywhere else the rules are proven piece by piece, in virtual time. Here a
`falconmq serve` runs as an administrator runs it, and somebody who has read the specification but
none of our code talks to it over TCP and UDP. Nothing is shared but the bytes.

    packets.py     packets made by hand with `struct`, right or wrong in any field
    play.py        one peer of the daemon: an address, a GUID, a blocking socket, what it counted
    exchange.py    a conversation as data: a name, steps, the rows of the catalogue that it proves
    calling.py     the same for a peer that the daemon calls
    stage.py       the daemons that are played against, each on an address of its own
    test_*.py      the conversations

A conversation reads like a script:

    Exchange(
        "a recoverable message is acknowledged with its bit",
        opened(window=2),
        send(message(recoverable=True)),
        expect(SessionAck, session__ack_sequence_number=1, session__recoverable_msg_ack_flags=1),
        rows=("QB-...",),
    )

Nobody sleeps to let something happen: a step waits for a packet, for the end of the connection, or
for a silence that is itself the rule. Every peer has an address of its own, so that nothing of one
conversation comes into another.

What a real clock cannot show in a minute (60 seconds for a session to open, 20 and more before a
silent peer is given up) is proven in tests/transport; a test marked `slow` waits for the shorter.
"""
