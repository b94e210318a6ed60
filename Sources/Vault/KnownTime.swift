public import MobileAuth
import SQLite

/// The latest time a token server vouched for: the earliest it can be, on a board that believes it is 1970.
enum KnownTime {
  static func row(_ seconds: Int64) -> CanonicalBytes {
    var row = CanonicalBytes("clock")
    row.add(seconds)
    return row
  }

  static func read(from connection: borrowing Connection, _ keys: VaultKeys) throws -> Int64 {
    let found = try connection.rows("SELECT seconds, mark FROM clock") { (try $0.integer(0), mark: try $0.blob(1)) }
    guard let (seconds, mark) = found.first, keys.isMark(mark, of: row(seconds)) else {
      throw CustodyFault.damaged("the latest known time")
    }
    return seconds
  }
}

extension Vault {
  /// Seconds since 1970; 0 until a time was noted.
  public func latestKnownTime() throws(CustodyFault) -> Int64 {
    try snapshot { connection in try KnownTime.read(from: connection, keys) }
  }

  /// Remembers a time that something trusted vouched for, if it is later than the latest known one.
  /// - Parameter time: seconds since 1970.
  public func note(time: Int64) throws(CustodyFault) {
    try transaction { connection in
      guard time > (try KnownTime.read(from: connection, keys)) else { return }
      try connection.run("UPDATE clock SET seconds = ?, mark = ?", time, keys.mark(KnownTime.row(time)))
    }
  }
}
