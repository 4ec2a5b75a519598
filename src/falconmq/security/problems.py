"""What goes wrong with keys, certificates, ciphers and signatures."""

from __future__ import annotations

from falconmq.errors import FalconMQError, MqStatus

ALLOW_WEAK_HINT = "an administrator can allow weak algorithms for this peer or queue"


class SecurityError(FalconMQError):
    """Base of everything below."""


class CryptographyMissingError(SecurityError):
    """The package `cryptography` is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "keys and certificates need the package cryptography, which is not installed",
            status=MqStatus.COMPUTER_DOES_NOT_SUPPORT_ENCRYPTION,
            hint="pip install 'falconmq[security]'",
        )


class WeakAlgorithmError(SecurityError):
    """Something that can be broken, and that nobody has allowed."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} is weak, and weak algorithms are not allowed here",
            status=MqStatus.CORRUPTED_SECURITY_DATA,
            hint=ALLOW_WEAK_HINT,
        )


class EncryptionError(SecurityError):
    """A body that cannot be encrypted for its receiver."""

    def __init__(
        self,
        message: str,
        *,
        status: MqStatus = MqStatus.COMPUTER_DOES_NOT_SUPPORT_ENCRYPTION,
        hint: str = "",
    ) -> None:
        super().__init__(message, status=status, hint=hint)


class DecryptionError(SecurityError):
    """A body that cannot be decrypted. It does not say at which step: that would help attackers."""

    def __init__(self, message: str = "the body cannot be decrypted") -> None:
        super().__init__(message, status=MqStatus.CORRUPTED_SECURITY_DATA)


class SignatureError(SecurityError):
    """A signature that cannot be made, or that does not fit the message."""

    def __init__(
        self, message: str, *, status: MqStatus = MqStatus.FAIL_VERIFY_SIGNATURE_EX, hint: str = ""
    ) -> None:
        super().__init__(message, status=status, hint=hint)


class CertificateError(SecurityError):
    """Bytes that are no certificate, or one that cannot be used here."""

    def __init__(
        self, message: str, *, status: MqStatus = MqStatus.INVALID_CERTIFICATE, hint: str = ""
    ) -> None:
        super().__init__(message, status=status, hint=hint)


class PrivateKeyError(CertificateError):
    """A private key that is none, of another kind, or of another certificate."""


class CertificateExistsError(CertificateError):
    """The user has this certificate, or an internal one, already."""


class UnknownEntryError(SecurityError):
    """No such certificate, no such queue manager in the files of the data directory."""


class RegistryAwayError(SecurityError):
    """Nobody can say now who has which keys or certificates; later somebody may."""

    def __init__(self, message: str, *, since: float, hint: str = "") -> None:
        super().__init__(message, status=MqStatus.NO_DS, hint=hint)
        self.since = since  # when it began, in seconds since 1970


class RegistryAskedError(RegistryAwayError):
    """It is being asked at this moment, in another thread: whoever can wait is told."""


class PeerKeysError(SecurityError):
    """Something that was to be imported and is no set of public keys."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"these are no keys of a queue manager: {problem}",
            status=MqStatus.INVALID_PARAMETER,
            hint="they are written by: falconmq key export",
        )


class KeyFileError(SecurityError):
    """A file of keys in the data directory that cannot be used."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, status=MqStatus.CANNOT_OPEN_CERT_STORE, hint=hint)
