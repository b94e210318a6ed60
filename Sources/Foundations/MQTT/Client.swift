// SPDX-License-Identifier: Apache-2.0
import CMosquitto
import COpenSSL
import CTLS
import CertificateTrust
import Glibc
import Secrets

/// A libmosquitto client for one connection. Used only on one thread, which owns its socket.
///
/// libmosquitto appends the PUBACK to its outgoing queue *before* it calls the message callback. In its mode for
/// external event loops it does not send that queue until `write` is called. A message can therefore be acknowledged
/// only after it is durable: nothing is sent while the message is being stored, and if that fails, the client is
/// destroyed together with its queue.
final class Client {
  private let handle: OpaquePointer
  private let tls: TLSContext
  /// The last error that libmosquitto logged.
  private var complaint: String?

  /// - Parameter owner: receives the callbacks and must outlive the client.
  init(_ session: Session, owner: LinkLoop) throws(BrokerError) {
    guard libraryStatus == 0 else { throw .unusable("libmosquitto does not start") }
    if let presence = session.presence { try Self.check(topic: presence) }
    tls = try TLSContext(host: session.broker.host, trust: session.broker.trust)
    guard !session.clientID.isEmpty,
      let handle = mosquitto_new(
        session.clientID, session.topics.isEmpty, Unmanaged.passUnretained(owner).toOpaque())
    else { throw .unusable("client id \"\(session.clientID)\"") }
    self.handle = handle
    try configure(session)
    setCallbacks()
  }

  /// Closes the socket without DISCONNECT, so that the broker publishes the will, as after a power loss.
  deinit { mosquitto_destroy(handle) }

  private func configure(_ session: Session) throws(BrokerError) {
    let version = session.broker.version == .v5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311
    try check(mosquitto_int_option(handle, MOSQ_OPT_PROTOCOL_VERSION, version))
    try check(mosquitto_int_option(handle, MOSQ_OPT_SSL_CTX_WITH_DEFAULTS, 0))
    try check(mosquitto_void_option(handle, MOSQ_OPT_SSL_CTX, UnsafeMutableRawPointer(tls.context)))
    try check(mosquitto_int_option(handle, MOSQ_OPT_TCP_NODELAY, 1))
    try check(mosquitto_int_option(handle, MOSQ_OPT_RECEIVE_MAXIMUM, 8))
    try check(mosquitto_threaded_set(handle, true))
    if let credentials = session.broker.credentials {
      var password = credentials.password.withExposedSecret { $0.map { CChar(bitPattern: $0) } + [0] }
      defer { password.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
      try check(mosquitto_username_pw_set(handle, credentials.user, password))
    }
    if let topic = session.presence {
      let words = Array("offline".utf8)
      try check(mosquitto_will_set(handle, topic, Int32(words.count), words, 1, true))
    }
  }

  // MARK: Connection

  /// Resolves the name and connects. The TLS handshake continues in `read` and `write`.
  func connect(_ session: Session, from source: String?) throws(BrokerError) {
    var properties: OpaquePointer?
    defer { mosquitto_property_free_all(&properties) }
    if session.broker.version == .v5 {
      let expiry = session.topics.isEmpty ? 0 : UInt32(Session.expiry.components.seconds)
      mosquitto_property_add_int32(&properties, Int32(MQTT_PROP_SESSION_EXPIRY_INTERVAL.rawValue), expiry)
      mosquitto_property_add_int32(
        &properties, Int32(MQTT_PROP_MAXIMUM_PACKET_SIZE.rawValue), UInt32(Subscriber.maximumMessageBytes + 1024))
    }
    do throws(BrokerError) {
      try check(
        mosquitto_connect_bind_v5(
          handle, session.broker.host, Int32(session.broker.port), Int32(session.keepalive), source, properties))
    } catch {
      guard case .unreachable(let reason) = error, let source else { throw error }
      throw .unreachable("\(reason) (from \(source))")
    }
    // If the network is interrupted, no FIN arrives. Unacknowledged data ends the connection after 20 s instead of 15
    // minutes.
    set(TCP_USER_TIMEOUT, to: 20_000)
  }

  /// Lets the kernel send probes, for a broker that wants PINGREQs rarely or never: an idle connection ends when
  /// nothing has arrived for a minute. From then on, unacknowledged data ends it after a minute, too.
  func probe() {
    set(SO_KEEPALIVE, of: SOL_SOCKET, to: 1)
    set(TCP_KEEPIDLE, to: 30)
    set(TCP_KEEPINTVL, to: 10)
    set(TCP_USER_TIMEOUT, to: 60_000)
  }

  private func set(_ option: Int32, of level: Int32 = Int32(IPPROTO_TCP), to value: Int32) {
    var value = value
    setsockopt(socket, level, option, &value, socklen_t(MemoryLayout.size(ofValue: value)))
  }

  /// The socket; -1 if there is none.
  var socket: Int32 { mosquitto_socket(handle) }
  var wantsToWrite: Bool { mosquitto_want_write(handle) }

  var isInHandshake: Bool {
    guard let connection = mosquitto_ssl_get(handle) else { return false }
    return SSL_is_init_finished(OpaquePointer(connection)) == 0
  }

  func read() throws(BrokerError) { try check(mosquitto_loop_read(handle, 1)) }
  func write() throws(BrokerError) { try check(mosquitto_loop_write(handle, 1)) }
  /// Queues a PINGREQ when one is due.
  func serviceKeepalive() throws(BrokerError) { try check(mosquitto_loop_misc(handle)) }

  // MARK: Packets

  /// - Returns: the packet identifier that the acknowledgment contains.
  func subscribe(to topic: String, _ version: Broker.Version) throws(BrokerError) -> Int32 {
    try Self.check(topic: topic)
    var number: Int32 = 0
    // Retained messages may be old, and the user must not be shown old requests.
    let options = version == .v5 ? Int32(MQTT_SUB_OPT_SEND_RETAIN_NEVER.rawValue) : 0
    try check(mosquitto_subscribe_v5(handle, &number, topic, 1, options, nil))
    return number
  }

  func unsubscribe(from topic: String) throws(BrokerError) {
    try Self.check(topic: topic)
    try check(mosquitto_unsubscribe(handle, nil, topic))
  }

  /// Publishes at least once (QoS 1).
  /// - Returns: the packet identifier that the acknowledgment contains.
  func publish(_ payload: [UInt8], to topic: String, retained: Bool) throws(BrokerError) -> Int32 {
    var number: Int32 = 0
    try check(mosquitto_publish_v5(handle, &number, topic, Int32(payload.count), payload, 1, retained, nil))
    return number
  }

  // MARK: Callbacks

  private func setCallbacks() {
    mosquitto_connect_v5_callback_set(handle) { _, owner, reason, _, properties in
      var keepalive: UInt16 = 0
      let found = mosquitto_property_read_int16(
        properties, Int32(MQTT_PROP_SERVER_KEEP_ALIVE.rawValue), &keepalive, false)
      loop(owner).hasConnected(reason, keepalive: found == nil ? nil : keepalive)
    }
    mosquitto_subscribe_v5_callback_set(handle) { _, owner, number, count, granted, _ in
      let reasons = UnsafeBufferPointer(start: granted, count: Int(count))
      loop(owner).hasSubscribed(number, isGranted: reasons.allSatisfy { $0 < 0x80 } && count > 0)
    }
    mosquitto_message_v5_callback_set(handle) { _, owner, message, _ in
      guard let message = message?.pointee, let topic = message.topic else { return }
      let payload = UnsafeRawBufferPointer(start: message.payload, count: Int(message.payloadlen))
      loop(owner).received(payload, from: String(cString: topic), isRetained: message.retain)
    }
    mosquitto_publish_v5_callback_set(handle) { _, owner, number, reason, _ in
      loop(owner).wasAcknowledged(number, isAccepted: reason < 0x80)
    }
    mosquitto_disconnect_v5_callback_set(handle) { _, owner, reason, _ in loop(owner).hasDisconnected(reason) }
    mosquitto_log_callback_set(handle) { _, owner, level, text in
      guard level == Int32(MOSQ_LOG_ERR), let text else { return }
      loop(owner).client?.complaint = String(cString: text)
    }
  }

  // MARK: Errors

  private static func check(topic: String) throws(BrokerError) {
    guard !topic.isEmpty, mosquitto_pub_topic_check(topic) == 0 else { throw .unusable("topic \"\(topic)\"") }
  }

  private func check(_ status: Int32) throws(BrokerError) {
    guard status != 0 else { return }
    let number = errno
    if let refusal = tls.certificateVerifier.refusal { throw .untrusted(refusal) }
    switch mosq_err_t(rawValue: status) {
    case MOSQ_ERR_ERRNO: throw .unreachable(String(cString: strerror(number)))
    // libmosquitto stores the error code of getaddrinfo in errno.
    case MOSQ_ERR_EAI: throw .unreachable("its name cannot be resolved: \(String(cString: gai_strerror(number)))")
    case MOSQ_ERR_TLS: throw .unreachable("no TLS handshake: \(complaint ?? "it closed the connection")")
    case MOSQ_ERR_KEEPALIVE: throw .unreachable("it no longer responds")
    case MOSQ_ERR_INVAL, MOSQ_ERR_MALFORMED_UTF8, MOSQ_ERR_NOT_SUPPORTED:
      throw .unusable(String(cString: mosquitto_strerror(status)))
    default: throw .unreachable(String(cString: mosquitto_strerror(status)))
    }
  }
}

private func loop(_ owner: UnsafeMutableRawPointer?) -> LinkLoop {
  guard let owner else { fatalError("libmosquitto lost its user data") }
  return Unmanaged<LinkLoop>.fromOpaque(owner).takeUnretainedValue()
}

private let libraryStatus = mosquitto_lib_init()
