"""One directory on many servers (MC-MQDSRP): who decides what, and how the others hear of it."""
