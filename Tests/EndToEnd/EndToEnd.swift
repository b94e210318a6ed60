import Testing

/// Both programs as processes over real TLS sockets, with curl as the portal. One after the other: gestures take their
/// real time, and a busy machine would make people look slow.
@Suite(.serialized, .timeLimit(.minutes(10))) struct EndToEnd {}
