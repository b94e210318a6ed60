import Glibc

/// A program that was built beside the tests.
func program(_ name: String) throws -> String {
  var path = [CChar](repeating: 0, count: Int(PATH_MAX))
  let length = readlink("/proc/self/exe", &path, path.count)
  guard length > 0 else { throw BenchFailure(what: "/proc/self/exe: errno \(errno)") }
  let own = String(decoding: path[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self)
  // The tests' own program lies in a directory beside, or with a newer builder in one below.
  let folder = own.split(separator: "/").dropLast()
  for folder in [folder, folder.dropLast()] {
    let file = "/" + (folder + [name[...]]).joined(separator: "/")
    if access(file, X_OK) == 0 { return file }
  }
  throw BenchFailure(what: "there is no program \(name) beside \(own)")
}

struct Outcome: CustomStringConvertible {
  let status: Int32
  /// Standard output, and standard error after it.
  let output: String

  var description: String { "exit code \(status): \(output)" }
}

/// Runs a line of shell to its end, in which `token` is the program under test.
func shell(_ line: String) throws -> Outcome {
  let file = "/run/bench-kernel/output"
  let token = (try? program("approval-token")) ?? "approval-token"
  let status = system("token() { \(token) \"$@\"; }; { \(line)\n} >\(file) 2>&1 </dev/null")
  return Outcome(status: status & 0x7F == 0 ? status >> 8 & 0xFF : -(status & 0x7F), output: try contents(file))
}

/// Looks again and again until there is something to see; what takes this long is broken, not slow.
func eventually<Sight>(
  _ what: String, within limit: Duration = .seconds(60), _ look: () async throws -> Sight?
) async throws -> Sight {
  let end = ContinuousClock.now + limit
  while ContinuousClock.now < end {
    if let sight = try await look() { return sight }
    try await Task.sleep(for: .milliseconds(50))
  }
  throw BenchFailure(what: "not seen within \(limit): \(what)")
}
