# Calls that libraries try and do without: answered with ENOSYS, and not recorded.
default allow
errno:ENOSYS clone3
