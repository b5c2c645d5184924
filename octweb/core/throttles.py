"""How often somebody may call the API; the answer says when to come back (Retry-After)."""

from rest_framework.throttling import AnonRateThrottle, UserRateThrottle


class UserThrottle(UserRateThrottle):
    scope = "user"


class StrangerThrottle(AnonRateThrottle):
    scope = "stranger"
