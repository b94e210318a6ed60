// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import Glibc

/// `reader-finger` with one of libfprint's virtual readers, and the connection to its standard input and output.
final class ReaderProcess {
  struct ReaderProcessError: Error, CustomStringConvertible {
    let description: String
  }

  enum VirtualReader: String {
    /// Takes commands, and compares names instead of images.
    case device = "FP_VIRTUAL_DEVICE"
    /// Takes images.
    case image = "FP_VIRTUAL_IMAGE"
  }

  /// How long a test waits for a line or for the end of the process.
  private static let patience = 60

  private let process: pid_t
  private let connection: Int32
  /// The other end, if this test keeps it open, as systemd does for a socket with `Accept=yes`.
  private let keptEnd: Int32?
  private let folder: URL
  private var unread: [UInt8] = []
  private var status: Int32?

  /// - Parameter options: the number is how long the sensor must be seen without a finger, in milliseconds.
  init(_ reader: VirtualReader?, options: [String] = ["--virtual-readers", "50"], keepsEnd: Bool = false) throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "finger-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    var ends: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0, &ends) == 0 else {
      throw ReaderProcessError(description: "no socket pair")
    }
    connection = ends[0]
    keptEnd = keepsEnd ? ends[1] : nil
    defer { if !keepsEnd { close(ends[1]) } }
    var limit = timeval(tv_sec: Self.patience, tv_usec: 0)
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let program = try BuiltProgram.path("reader-finger")
    let path = folder.path
    let variables = reader.map { ["\($0.rawValue)=\(path)/reader"] } ?? []
    process = try Self.start([program] + options, ["PATH=/usr/bin"] + variables, ends[1], "\(path)/errors")
  }

  private static func start(
    _ arguments: [String], _ variables: [String], _ end: Int32, _ errors: String
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, end, 0)
    posix_spawn_file_actions_adddup2(&actions, end, 1)
    posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    var argv = arguments.map { strdup($0) } + [nil]
    var envp = variables.map { strdup($0) } + [nil]
    defer { for text in argv + envp { free(text) } }
    var process: pid_t = 0
    guard posix_spawn(&process, arguments[0], &actions, nil, &argv, &envp) == 0 else {
      throw ReaderProcessError(description: "\(arguments[0]) does not start")
    }
    return process
  }

  deinit {
    if status == nil {
      kill(process, SIGKILL)
      waitpid(process, nil, 0)
    }
    close(connection)
    if let keptEnd { close(keptEnd) }
    try? FileManager.default.removeItem(at: folder)
  }

  /// What the reader wrote to standard error, with libfprint's messages for debugging.
  var errors: String { (try? String(contentsOfFile: "\(folder.path)/errors", encoding: .utf8)) ?? "" }

  // MARK: The connection

  func send(_ text: String) {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let count = bytes.withUnsafeBytes { Glibc.send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { return }
      bytes = bytes.dropFirst(count)
    }
  }

  /// A request without its line feed.
  static func request(_ step: String, _ more: String = "") -> String {
    let challenge = Data(0..<32).base64EncodedString()
    return #"{"v":1,"server":"h","challenge":"\#(challenge)","step":"\#(step)"\#(more)}"#
  }

  /// Sends a request.
  func ask(_ step: String, registration: String? = nil) {
    let registration = registration.map { ",\"registration\":\"\($0)\"" } ?? ""
    send(Self.request(step, #","account":"alice","authenticator":"fingerprint"\#(registration)"#) + "\n")
  }

  func hangUp() { shutdown(connection, Int32(SHUT_RDWR)) }

  /// The next line, as one member and its value; nil after the last one. Of the answer to a registration, the second
  /// member; the first one is empty.
  func line() throws -> (name: String, value: String)? {
    while true {
      if let feed = unread.firstIndex(of: UInt8(ascii: "\n")) {
        let line = Data(unread[..<feed])
        unread.removeSubrange(...feed)
        var members = try JSONDecoder().decode([String: String].self, from: line)
        if members.count == 2, members["data"] == "" { members["data"] = nil }
        guard members.count == 1, let member = members.first else {
          throw ReaderProcessError(description: "not one member: \(members)")
        }
        return (member.key, member.value)
      }
      var bytes = [UInt8](repeating: 0, count: 65536)
      let count = recv(connection, &bytes, bytes.count, 0)
      // A process that ends without having read everything resets the connection.
      if count == 0 || count < 0 && errno == ECONNRESET { return nil }
      guard count > 0 else { throw ReaderProcessError(description: "no line within \(Self.patience) s; \(errors)") }
      unread += bytes[..<count]
    }
  }

  /// The next line as text.
  func next() throws -> String { try line().map { "\($0.name): \($0.value)" } ?? "end" }

  /// How the process ended: its exit code, or less than 0 for a signal.
  func end() throws -> Int32 {
    if let status { return status }
    var code: Int32 = 0
    for _ in 0..<(Self.patience * 100) {
      if waitpid(process, &code, WNOHANG) == process {
        let signal = code & 0x7F
        status = signal == 0 ? code >> 8 & 0xFF : -signal
        return status ?? 0
      }
      usleep(10_000)
    }
    throw ReaderProcessError(description: "the reader did not end within \(Self.patience) s")
  }

  // MARK: The finger

  /// Waits until the virtual reader waits for a finger, of which the program need not have told yet.
  func needsFinger() throws {
    for _ in 0..<(Self.patience * 100) {
      if errors.contains("finger status change: FP_FINGER_STATUS_NEEDED") { return }
      usleep(10_000)
    }
    throw ReaderProcessError(description: "the virtual reader waits for no finger; \(errors)")
  }

  /// Sends a command, or an image, to the virtual reader. It listens while it is open.
  func present(_ bytes: [UInt8]) throws {
    let path = Array("\(folder.path)/reader".utf8)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
    let sensor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
    defer { close(sensor) }
    let isConnected = withUnsafePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(sensor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
      }
    }
    guard isConnected else { throw ReaderProcessError(description: "the virtual reader does not listen") }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.send(sensor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { throw ReaderProcessError(description: "the virtual reader does not read") }
      rest = rest.dropFirst(count)
    }
  }

  func present(_ command: String) throws { try present(Array(command.utf8)) }
}
