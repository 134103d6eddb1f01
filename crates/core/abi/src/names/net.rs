//! Sockets and networks, as the headers of Linux name them.
//! A table `LATER_…` has what audit 4.0.2 knows and 3.0.9 does not.

use super::Names;

/// Address families.
#[rustfmt::skip]
pub static ADDRESS_FAMILIES: Names = &[
    (1, "local"), (2, "inet"), (3, "ax25"), (4, "ipx"), (5, "appletalk"), (6, "netrom"),
    (7, "bridge"), (8, "atmpvc"), (9, "x25"), (10, "inet6"), (11, "rose"), (12, "decnet"),
    (13, "netbeui"), (14, "security"), (15, "key"), (16, "netlink"), (17, "packet"), (18, "ash"),
    (19, "econet"), (20, "atmsvc"), (21, "rds"), (22, "sna"), (23, "irda"), (24, "pppox"),
    (25, "wanpipe"), (26, "llc"), (29, "can"), (30, "tipc"), (31, "bluetooth"), (32, "iucv"),
    (33, "rxrpc"), (34, "isdn"), (35, "phonet"), (36, "ieee802154"), (37, "caif"), (38, "alg"),
    (39, "nfc"), (40, "vsock"), (41, "kcm"), (42, "qipcrtr"), (43, "smc"), (44, "xdp"),
];

/// More of [`ADDRESS_FAMILIES`].
#[rustfmt::skip]
pub static LATER_ADDRESS_FAMILIES: Names = &[
    (45, "mctp"),
];

/// Types of socket(2).
#[rustfmt::skip]
pub static SOCKET_TYPES: Names = &[
    (1, "SOCK_STREAM"), (2, "SOCK_DGRAM"), (3, "SOCK_RAW"), (4, "SOCK_RDM"), (5, "SOCK_SEQPACKET"),
    (6, "SOCK_DCCP"), (10, "SOCK_PACKET"),
];

/// Calls behind socketcall(2).
#[rustfmt::skip]
pub static SOCKET_CALLS: Names = &[
    (1, "socket"), (2, "bind"), (3, "connect"), (4, "listen"), (5, "accept"), (6, "getsockname"),
    (7, "getpeername"), (8, "socketpair"), (9, "send"), (10, "recv"), (11, "sendto"),
    (12, "recvfrom"), (13, "shutdown"), (14, "setsockopt"), (15, "getsockopt"), (16, "sendmsg"),
    (17, "recvmsg"), (18, "accept4"), (19, "recvmmsg"), (20, "sendmmsg"),
];

/// Flags of recv(2) and send(2).
#[rustfmt::skip]
pub static MESSAGE_FLAGS: Names = &[
    (0x1, "MSG_OOB"), (0x2, "MSG_PEEK"), (0x4, "MSG_DONTROUTE"), (0x8, "MSG_CTRUNC"),
    (0x10, "MSG_PROXY"), (0x20, "MSG_TRUNC"), (0x40, "MSG_DONTWAIT"), (0x80, "MSG_EOR"),
    (0x100, "MSG_WAITALL"), (0x200, "MSG_FIN"), (0x400, "MSG_SYN"), (0x800, "MSG_CONFIRM"),
    (0x1000, "MSG_RST"), (0x2000, "MSG_ERRQUEUE"), (0x4000, "MSG_NOSIGNAL"), (0x8000, "MSG_MORE"),
    (0x10000, "MSG_WAITFORONE"), (0x20000, "MSG_SENDPAGE_NOTLAST"), (0x40000, "MSG_BATCH"),
    (0x20000000, "MSG_FASTOPEN"), (0x40000000, "MSG_CMSG_CLOEXEC"), (0x80000000, "MSG_CMSG_COMPAT"),
];

/// Levels of setsockopt(2) that are not protocols.
#[rustfmt::skip]
pub static SOCKET_LEVELS: Names = &[
    (0, "SOL_IP"), (6, "SOL_TCP"), (17, "SOL_UDP"), (41, "SOL_IPV6"), (58, "SOL_ICMPV6"),
    (132, "SOL_SCTP"), (136, "SOL_UDPLITE"), (255, "SOL_RAW"), (256, "SOL_IPX"), (257, "SOL_AX25"),
    (258, "SOL_ATALK"), (259, "SOL_NETROM"), (260, "SOL_ROSE"), (261, "SOL_DECNET"),
    (263, "SOL_PACKET"), (264, "SOL_ATM"), (265, "SOL_AAL"), (266, "SOL_IRDA"),
    (267, "SOL_NETBEUI"), (268, "SOL_LLC"), (269, "SOL_DCCP"), (270, "SOL_NETLINK"),
    (271, "SOL_TIPC"), (272, "SOL_RXRPC"), (273, "SOL_PPPOL2TP"), (274, "SOL_BLUETOOTH"),
    (275, "SOL_PNPIPE"), (276, "SOL_RDS"), (277, "SOL_IUCV"), (278, "SOL_CAIF"), (279, "SOL_ALG"),
    (280, "SOL_NFC"), (281, "SOL_KCM"), (282, "SOL_TLS"), (283, "SOL_XDP"),
];

/// More of [`SOCKET_LEVELS`].
#[rustfmt::skip]
pub static LATER_SOCKET_LEVELS: Names = &[
    (284, "SOL_MPTCP"), (285, "SOL_MCTP"), (286, "SOL_SMC"), (287, "SOL_VSOCK"),
];

/// Options at `SOL_SOCKET`.
#[rustfmt::skip]
pub static SOCKET_OPTIONS: Names = &[
    (1, "SO_DEBUG"), (2, "SO_REUSEADDR"), (3, "SO_TYPE"), (4, "SO_ERROR"), (5, "SO_DONTROUTE"),
    (6, "SO_BROADCAST"), (7, "SO_SNDBUF"), (8, "SO_RCVBUF"), (9, "SO_KEEPALIVE"),
    (10, "SO_OOBINLINE"), (11, "SO_NO_CHECK"), (12, "SO_PRIORITY"), (13, "SO_LINGER"),
    (14, "SO_BSDCOMPAT"), (15, "SO_REUSEPORT"), (16, "SO_PASSCRED"), (17, "SO_PEERCRED"),
    (18, "SO_RCVLOWAT"), (19, "SO_SNDLOWAT"), (20, "SO_RCVTIMEO"), (21, "SO_SNDTIMEO"),
    (22, "SO_SECURITY_AUTHENTICATION"), (23, "SO_SECURITY_ENCRYPTION_TRANSPORT"),
    (24, "SO_SECURITY_ENCRYPTION_NETWORK"), (25, "SO_BINDTODEVICE"), (26, "SO_ATTACH_FILTER"),
    (27, "SO_DETACH_FILTER"), (28, "SO_PEERNAME"), (29, "SO_TIMESTAMP"), (30, "SO_ACCEPTCONN"),
    (31, "SO_PEERSEC"), (32, "SO_SNDBUFFORCE"), (33, "SO_RCVBUFFORCE"), (34, "SO_PASSSEC"),
    (35, "SO_TIMESTAMPNS"), (36, "SO_MARK"), (37, "SO_TIMESTAMPING"), (38, "SO_PROTOCOL"),
    (39, "SO_DOMAIN"), (40, "SO_RXQ_OVFL"), (41, "SO_WIFI_STATUS"), (42, "SO_PEEK_OFF"),
    (43, "SO_NOFCS"), (44, "SO_LOCK_FILTER"), (45, "SO_SELECT_ERR_QUEUE"), (46, "SO_BUSY_POLL"),
    (47, "SO_MAX_PACING_RATE"), (48, "SO_BPF_EXTENSIONS"), (49, "SO_INCOMING_CPU"),
    (50, "SO_ATTACH_BPF"), (51, "SO_ATTACH_REUSEPORT_CBPF"), (52, "SO_ATTACH_REUSEPORT_EBPF"),
    (53, "SO_CNX_ADVICE"), (54, "SCM_TIMESTAMPING_OPT_STATS"), (55, "SO_MEMINFO"),
    (56, "SO_INCOMING_NAPI_ID"), (57, "SO_COOKIE"), (58, "SCM_TIMESTAMPING_PKTINFO"),
    (59, "SO_PEERGROUPS"), (60, "SO_ZEROCOPY"), (61, "SO_TXTIME"), (62, "SO_BINDTOIFINDEX"),
    (63, "SO_TIMESTAMP_NEW"), (64, "SO_TIMESTAMPNS_NEW"), (65, "SO_TIMESTAMPING_NEW"),
    (66, "SO_RCVTIMEO_NEW"), (67, "SO_SNDTIMEO_NEW"), (68, "SO_DETACH_REUSEPORT_BPF"),
    (116, "SO_RCVLOWAT"), (117, "SO_SNDLOWAT"), (118, "SO_RCVTIMEO"), (119, "SO_SNDTIMEO"),
    (120, "SO_PASSCRED"), (121, "SO_PEERCRED"),
];

/// More of [`SOCKET_OPTIONS`].
#[rustfmt::skip]
pub static LATER_SOCKET_OPTIONS: Names = &[
    (69, "SO_PREFER_BUSY_POLL"), (70, "SO_BUSY_POLL_BUDGET"), (71, "SO_NETNS_COOKIE"),
    (72, "SO_BUF_LOCK"), (73, "SO_RESERVE_MEM"), (74, "SO_TXREHASH"), (75, "SO_RCVMARK"),
    (76, "SO_PASSPIDFD"), (77, "SO_PEERPIDFD"),
];

/// Options at `IPPROTO_IP`.
#[rustfmt::skip]
pub static IP_OPTIONS: Names = &[
    (1, "IP_TOS"), (2, "IP_TTL"), (3, "IP_HDRINCL"), (4, "IP_OPTIONS"), (5, "IP_ROUTER_ALERT"),
    (6, "IP_RECVOPTS"), (7, "IP_RETOPTS"), (8, "IP_PKTINFO"), (9, "IP_PKTOPTIONS"),
    (10, "IP_MTU_DISCOVER"), (11, "IP_RECVERR"), (12, "IP_RECVTTL"), (13, "IP_RECVTOS"),
    (14, "IP_MTU"), (15, "IP_FREEBIND"), (16, "IP_IPSEC_POLICY"), (17, "IP_XFRM_POLICY"),
    (18, "IP_PASSSEC"), (19, "IP_TRANSPARENT"), (20, "IP_ORIGDSTADDR"), (21, "IP_MINTTL"),
    (22, "IP_NODEFRAG"), (23, "IP_CHECKSUM"), (24, "IP_BIND_ADDRESS_NO_PORT"),
    (25, "IP_RECVFRAGSIZE"), (32, "IP_MULTICAST_IF"), (33, "IP_MULTICAST_TTL"),
    (34, "IP_MULTICAST_LOOP"), (35, "IP_ADD_MEMBERSHIP"), (36, "IP_DROP_MEMBERSHIP"),
    (37, "IP_UNBLOCK_SOURCE"), (38, "IP_BLOCK_SOURCE"), (39, "IP_ADD_SOURCE_MEMBERSHIP"),
    (40, "IP_DROP_SOURCE_MEMBERSHIP"), (41, "IP_MSFILTER"), (42, "MCAST_JOIN_GROUP"),
    (43, "MCAST_BLOCK_SOURCE"), (44, "MCAST_UNBLOCK_SOURCE"), (45, "MCAST_LEAVE_GROUP"),
    (46, "MCAST_JOIN_SOURCE_GROUP"), (47, "MCAST_LEAVE_SOURCE_GROUP"), (48, "MCAST_MSFILTER"),
    (49, "IP_MULTICAST_ALL"), (50, "IP_UNICAST_IF"), (64, "IPT_SO_SET_REPLACE"),
    (65, "IPT_SO_SET_ADD_COUNTERS"), (66, "IPT_SO_GET_REVISION_TARGET"),
];

/// More of [`IP_OPTIONS`].
#[rustfmt::skip]
pub static LATER_IP_OPTIONS: Names = &[
    (51, "IP_LOCAL_PORT_RANGE"), (52, "IP_PROTOCOL"),
];

/// Options at `IPPROTO_IPV6`.
#[rustfmt::skip]
pub static IP6_OPTIONS: Names = &[
    (1, "IPV6_ADDRFORM"), (2, "IPV6_2292PKTINFO"), (3, "IPV6_2292HOPOPTS"), (4, "IPV6_2292DSTOPTS"),
    (5, "IPV6_2292RTHDR"), (6, "IPV6_2292PKTOPTIONS"), (7, "IPV6_CHECKSUM"),
    (8, "IPV6_2292HOPLIMIT"), (9, "IPV6_NEXTHOP"), (10, "IPV6_AUTHHDR"), (11, "IPV6_FLOWINFO"),
    (16, "IPV6_UNICAST_HOPS"), (17, "IPV6_MULTICAST_IF"), (18, "IPV6_MULTICAST_HOPS"),
    (19, "IPV6_MULTICAST_LOOP"), (20, "IPV6_ADD_MEMBERSHIP"), (21, "IPV6_DROP_MEMBERSHIP"),
    (22, "IPV6_ROUTER_ALERT"), (23, "IPV6_MTU_DISCOVER"), (24, "IPV6_MTU"), (25, "IPV6_RECVERR"),
    (26, "IPV6_V6ONLY"), (27, "IPV6_JOIN_ANYCAST"), (28, "IPV6_LEAVE_ANYCAST"),
    (29, "IPV6_MULTICAST_ALL"), (30, "IPV6_ROUTER_ALERT_ISOLATE"), (32, "IPV6_FLOWLABEL_MGR"),
    (33, "IPV6_FLOWINFO_SEND"), (34, "IPV6_IPSEC_POLICY"), (35, "IPV6_XFRM_POLICY"),
    (36, "IPV6_HDRINCL"), (42, "MCAST_JOIN_GROUP"), (43, "MCAST_BLOCK_SOURCE"),
    (44, "MCAST_UNBLOCK_SOURCE"), (45, "MCAST_LEAVE_GROUP"), (46, "MCAST_JOIN_SOURCE_GROUP"),
    (47, "MCAST_LEAVE_SOURCE_GROUP"), (48, "MCAST_MSFILTER"), (49, "IPV6_RECVPKTINFO"),
    (50, "IPV6_PKTINFO"), (51, "IPV6_RECVHOPLIMIT"), (52, "IPV6_HOPLIMIT"),
    (53, "IPV6_RECVHOPOPTS"), (54, "IPV6_HOPOPTS"), (55, "IPV6_RTHDRDSTOPTS"),
    (56, "IPV6_RECVRTHDR"), (57, "IPV6_RTHDR"), (58, "IPV6_RECVDSTOPTS"), (59, "IPV6_DSTOPTS"),
    (60, "IPV6_RECVPATHMTU"), (61, "IPV6_PATHMTU"), (62, "IPV6_DONTFRAG"), (63, "IPV6_USE_MIN_MTU"),
    (64, "IP6T_SO_SET_REPLACE"), (65, "IP6T_SO_SET_ADD_COUNTERS"), (66, "IPV6_RECVTCLASS"),
    (67, "IPV6_TCLASS"), (68, "IP6T_SO_GET_REVISION_MATCH"), (69, "IP6T_SO_GET_REVISION_TARGET"),
    (70, "IPV6_AUTOFLOWLABEL"), (72, "IPV6_ADDR_PREFERENCES"), (73, "IPV6_MINHOPCOUNT"),
    (74, "IPV6_ORIGDSTADDR"), (75, "IPV6_TRANSPARENT"), (76, "IPV6_UNICAST_IF"),
    (77, "IPV6_RECVFRAGSIZE"), (78, "IPV6_FREEBIND"), (80, "IP6T_SO_ORIGINAL_DST"),
];

/// More of [`IP6_OPTIONS`].
#[rustfmt::skip]
pub static LATER_IP6_OPTIONS: Names = &[
    (31, "IPV6_RECVERR_RFC4884"),
];

/// Options at `IPPROTO_TCP`.
#[rustfmt::skip]
pub static TCP_OPTIONS: Names = &[
    (1, "TCP_NODELAY"), (2, "TCP_MAXSEG"), (3, "TCP_CORK"), (4, "TCP_KEEPIDLE"),
    (5, "TCP_KEEPINTVL"), (6, "TCP_KEEPCNT"), (7, "TCP_SYNCNT"), (8, "TCP_LINGER2"),
    (9, "TCP_DEFER_ACCEPT"), (10, "TCP_WINDOW_CLAMP"), (11, "TCP_INFO"), (12, "TCP_QUICKACK"),
    (13, "TCP_CONGESTION"), (14, "TCP_MD5SIG"), (15, "TCP_COOKIE_TRANSACTIONS"),
    (16, "TCP_THIN_LINEAR_TIMEOUTS"), (17, "TCP_THIN_DUPACK"), (18, "TCP_USER_TIMEOUT"),
    (19, "TCP_REPAIR"), (20, "TCP_REPAIR_QUEUE"), (21, "TCP_QUEUE_SEQ"), (22, "TCP_REPAIR_OPTIONS"),
    (23, "TCP_FASTOPEN"), (24, "TCP_TIMESTAMP"), (25, "TCP_NOTSENT_LOWAT"), (26, "TCP_CC_INFO"),
    (27, "TCP_SAVE_SYN"), (28, "TCP_SAVED_SYN"), (29, "TCP_REPAIR_WINDOW"),
    (30, "TCP_FASTOPEN_CONNECT"), (31, "TCP_ULP"), (32, "TCP_MD5SIG_EXT"), (33, "TCP_FASTOPEN_KEY"),
    (34, "TCP_FASTOPEN_NO_COOKIE"), (35, "TCP_ZEROCOPY_RECEIVE"), (36, "TCP_INQ"),
    (37, "TCP_TX_DELAY"),
];

/// More of [`TCP_OPTIONS`].
#[rustfmt::skip]
pub static LATER_TCP_OPTIONS: Names = &[
    (38, "TCP_AO_ADD_KEY"), (39, "TCP_AO_DEL_KEY"), (40, "TCP_AO_INFO"), (41, "TCP_AO_GET_KEYS"),
    (42, "TCP_AO_REPAIR"),
];

/// Options at `SOL_PACKET`.
#[rustfmt::skip]
pub static PACKET_OPTIONS: Names = &[
    (1, "PACKET_ADD_MEMBERSHIP"), (2, "PACKET_DROP_MEMBERSHIP"), (3, "PACKET_RECV_OUTPUT"),
    (5, "PACKET_RX_RING"), (6, "PACKET_STATISTICS"), (7, "PACKET_COPY_THRESH"),
    (8, "PACKET_AUXDATA"), (9, "PACKET_ORIGDEV"), (10, "PACKET_VERSION"), (11, "PACKET_HDRLEN"),
    (12, "PACKET_RESERVE"), (13, "PACKET_TX_RING"), (14, "PACKET_LOSS"), (15, "PACKET_VNET_HDR"),
    (16, "PACKET_TX_TIMESTAMP"), (17, "PACKET_TIMESTAMP"), (18, "PACKET_FANOUT"),
    (19, "PACKET_TX_HAS_OFF"), (20, "PACKET_QDISC_BYPASS"), (21, "PACKET_ROLLOVER_STATS"),
    (22, "PACKET_FANOUT_DATA"), (23, "PACKET_IGNORE_OUTGOING"),
];

/// More of [`PACKET_OPTIONS`].
#[rustfmt::skip]
pub static LATER_PACKET_OPTIONS: Names = &[
    (24, "PACKET_VNET_HDR_SZ"),
];

/// Protocols of netfilter.
#[rustfmt::skip]
pub static NETFILTER_PROTOCOLS: Names = &[
    (0, "unspecified"), (1, "inet"), (2, "ipv4"), (3, "arp"), (5, "netdev"), (7, "bridge"),
    (10, "ipv6"), (12, "decnet"),
];

/// Types of ICMP messages.
#[rustfmt::skip]
pub static ICMP_TYPES: Names = &[
    (0, "echo-reply"), (3, "destination-unreachable"), (4, "source-quench"), (5, "redirect"),
    (8, "echo"), (11, "time-exceeded"), (12, "parameter-problem"), (13, "timestamp-request"),
    (14, "timestamp-reply"), (15, "info-request"), (16, "info-reply"), (17, "address-mask-request"),
    (18, "address-mask-reply"),
];

/// Hooks of netfilter.
#[rustfmt::skip]
pub static NETFILTER_HOOKS: Names = &[
    (0, "PREROUTING"), (1, "INPUT"), (2, "FORWARD"), (3, "OUTPUT"), (4, "POSTROUTING"),
    (5, "BROUTING"),
];

/// Verdicts of netfilter.
#[rustfmt::skip]
pub static NETFILTER_ACTIONS: Names = &[
    (0, "ACCEPT"), (1, "DROP"), (2, "REJECT"),
];
