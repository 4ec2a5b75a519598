"""Captures at speed: the rules of `falconmq.capture`, with numpy over many frames at once.

How to think about it. Nearly all frames of a capture are dull: plain headers, segments that follow
each other, whole packets of known shape. Those are handled together, as arrays. Whatever is not
dull goes, one by one, through `falconmq.capture` and `falconmq.wire` themselves, so that there is
one truth about overlaps, holes and damage. What comes out is the same either way.

files      pcap files (pcapng: pcapng files) to the places of their frames
headers    frames to TCP segments and UDP datagrams
flows      segments, sorted by connection (sorting), to byte streams
streams    byte streams to packets
numbering  which message of its session a packet is
shapes     packets of common shapes to columns; messages by cursors and message_columns
facts      any other packet to a row
rows       all of it as batches of the tables in `tables`
reading    a set of files, from front to back
sets       which files belong together
views, packed, gather  numbers and bytes at many places at once
"""
