"""Errors of the API server, told apart as far as somebody acts on the difference."""


class KubeError(Exception):
    """A request to the API server failed."""


class UnavailableError(KubeError):
    """No answer, or one that says nothing about the request: network, time-out, 401, 429, 5xx. Try again."""


class OutageError(UnavailableError):
    """No answer at all: the API server is away, or the network is. It says nothing about the request."""


class NotFoundError(KubeError):
    """404: there is no such object (or namespace, or kind)."""


class ConflictError(KubeError):
    """409: the object exists already, or is another one than expected. Look again."""


class RefusedError(KubeError):
    """400, 403, 422 and the like: the request itself is refused. The same one will be refused again."""

    def __init__(self, status: int, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.cause = cause


class RefusedChildError(KubeError):
    """A request about one of several objects was refused; `what` names it for people."""

    def __init__(self, what: str, error: RefusedError) -> None:
        super().__init__(f"{what}: {error.message}")
        self.what = what
        self.error = error


class UnreachableError(Exception):
    """The relay did not answer, or refused to.

    `silent`: it took the request, or nothing did, in silence; `status`: that of its answer, 0 without one.
    """

    def __init__(self, message: str, *, silent: bool = False, status: int = 0) -> None:
        super().__init__(message)
        self.silent = silent
        self.status = status


class KeysRefusedError(UnreachableError):
    """The relay does not take a set of keys: the same one will be refused again."""


class UnreadableError(Exception):
    """The relay answered with something that is no report; the message says what is wrong with it."""


class NoObjectError(Exception):
    """The body of an answer is no JSON object; the message says what it is not, and quotes nothing."""


class IssuerError(Exception):
    """A token issuer did not send what it was asked for. `absent`: it has nothing there."""

    def __init__(self, message: str, *, absent: bool = False) -> None:
        super().__init__(message)
        self.absent = absent


class RegistryError(Exception):
    """A registry did not tell what an image starts.

    `denied`: these credentials may not see the image (some registries say then that there is none);
    `passing`: it may work later.
    """

    def __init__(self, message: str, *, denied: bool = False, passing: bool = False) -> None:
        super().__init__(message)
        self.denied = denied
        self.passing = passing
