# Added to daemon.profile if the configuration asks for it at the start: `metrics` with a port, or a `name_format` for
# which the host's name is looked up, by libraries that are loaded then.
allow socket a0==2
allow socket a0==10
allow sendmmsg recvmmsg
allow mmap mprotect
# FIONREAD, of the resolver.
allow ioctl a1==0x541b
# The resolver asks for the host's addresses (NETLINK_ROUTE).
allow socket a0==16 a2==0
