"""Packet captures: pcap and pcapng files down to the MSMQ packets inside them. No I/O of its own.

pcap        files to link-layer frames
frames      frames to TCP segments and UDP datagrams
reassembly  segments to the byte streams of conversations
packets     byte streams and datagrams to MSMQ packets
"""
