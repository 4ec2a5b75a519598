"""Keys, certificates, ciphers and signatures of MSMQ, as plain functions.

    providers        the three cryptographic providers that MSMQ names, and what each can do
    rsa, primes      RSA pairs; keys of 512 bits, which no library takes any more
    hashes           which hashes are for use, and how signatures name them
    keys             the six pairs of a queue manager, and the lists it publishes of them
    ciphers, rc2     AES, RC2, RC4 as CryptoAPI uses them
    session_keys     a symmetric key on its way under somebody's RSA key
    body_encryption  a message whose body only its receiver can read, and back
    signature_input  what a signature covers
    signatures       signing and verifying
    certificates     X.509 certificates of users
    caches           symmetric keys and certificates that need not be worked out again
    files, *_store   what of this is kept in the data directory
    library          the door to `cryptography`
    problems         what goes wrong

Nothing here knows a socket or a session; time and chance are handed in. The package `cryptography`
is imported when it is needed, and not before.
"""
