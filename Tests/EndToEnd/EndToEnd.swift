import Testing

/// Both programs as processes over real TLS sockets, with curl as the portal. Every test has directories, ports and
/// processes of its own, so that several run at a time.
@Suite(.timeLimit(.minutes(10))) struct EndToEnd {}
