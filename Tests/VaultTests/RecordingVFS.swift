// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Glibc
import Synchronization

/// SQLite's file operations, in order.
enum StorageEvent: Sendable {
  case created(String)
  case wrote(String, offset: Int, [UInt8])
  case truncated(String, Int)
  /// The file's contents, and its name if it is new: SQLite's Unix VFS syncs the directory with a new journal or log.
  case synced(String)
  case deleted(String, isDurable: Bool)
  /// The operation that the test called has returned.
  case returned
}

final class Log: Sendable {
  private let recorded = Mutex<[StorageEvent]>([])
  var events: [StorageEvent] { recorded.withLock { $0 } }
  func append(_ event: StorageEvent) { recorded.withLock { $0.append(event) } }
}

/// Forwards everything to SQLite's Unix VFS and records the operations that would reach the storage
/// (https://sqlite.org/vfs.html).
enum RecordingVFS {
  /// Runs `body`. Every database opened in `directory` is recorded in `log` while it stays open.
  static func recording<Result: ~Copyable>(
    _ directory: String, in log: @escaping @Sendable (StorageEvent) -> Void, _ body: () throws -> Result
  ) rethrows -> Result {
    listeners.withLock { $0[directory] = log }
    // Databases of other tests also use this VFS, and are not recorded.
    return try oneAtATime.withLock { _ in
      sqlite3_vfs_register(layer, 1)
      defer { sqlite3_vfs_register(original, 1) }
      return try body()
    }
  }
}

extension RecordingVFS {
  /// From now on, storage reports success and does nothing, for the directory's files that are open through this VFS.
  static func deafen(_ directory: String) { _ = deaf.withLock { $0.insert(directory) } }
}

/// SQLite has a single default VFS.
private let oneAtATime = Mutex(())

private let readCounts = Mutex<[String: Int]>([:])

extension RecordingVFS {
  /// How often files of the directory were read.
  static func reads(in directory: String) -> Int { readCounts.withLock { $0[directory] ?? 0 } }
}

private let deaf = Mutex<Set<String>>([])

private func isDeaf(_ file: File?) -> Bool {
  guard let open = slot(of: file).pointee?.takeUnretainedValue() else { return false }
  return deaf.withLock { $0.contains(open.directory) }
}

/// Logs by directory. Entries are never removed, because the journal is opened much later than the database.
private let listeners = Mutex<[String: @Sendable (StorageEvent) -> Void]>([:])

private func directoryAndName(_ path: UnsafePointer<CChar>) -> (String, String) {
  let parts = String(cString: path).split(separator: "/", omittingEmptySubsequences: false)
  return (parts.dropLast().joined(separator: "/"), String(parts.last ?? ""))
}

/// Stored between SQLite's file header and the Unix VFS's file: the file's name and its log.
private final class OpenFile {
  let directory: String
  let name: String
  let log: @Sendable (StorageEvent) -> Void

  init(directory: String, name: String, log: @escaping @Sendable (StorageEvent) -> Void) {
    self.directory = directory
    self.name = name
    self.log = log
  }
}

private let headerBytes = 16
private typealias File = UnsafeMutablePointer<sqlite3_file>

private func original(of file: File?) -> File {
  (UnsafeMutableRawPointer(file!) + headerBytes).assumingMemoryBound(to: sqlite3_file.self)
}

private func methods(of file: File?) -> sqlite3_io_methods { original(of: file).pointee.pMethods.pointee }

private func slot(of file: File?) -> UnsafeMutablePointer<Unmanaged<OpenFile>?> {
  (UnsafeMutableRawPointer(file!) + 8).assumingMemoryBound(to: Unmanaged<OpenFile>?.self)
}

private func report(_ file: File?, _ event: (String) -> StorageEvent) {
  guard let open = slot(of: file).pointee?.takeUnretainedValue() else { return }
  open.log(event(open.name))
}

private nonisolated(unsafe) let original: UnsafeMutablePointer<sqlite3_vfs> = sqlite3_vfs_find(nil)

private nonisolated(unsafe) let layer: UnsafeMutablePointer<sqlite3_vfs> = {
  let layer = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
  layer.initialize(to: original.pointee)
  layer.pointee.zName = UnsafePointer(strdup("recording"))
  layer.pointee.pNext = nil
  layer.pointee.szOsFile += Int32(headerBytes)
  layer.pointee.xOpen = { _, path, file, flags, outFlags in
    file?.pointee.pMethods = nil
    let isNew = path.map { access($0, F_OK) != 0 } ?? false
    let code = original.pointee.xOpen(original, path, original(of: file), flags, outFlags)
    guard code == SQLITE_OK else { return code }
    file?.pointee.pMethods = UnsafePointer(recordingMethods)
    slot(of: file).initialize(to: nil)
    if let (directory, name) = path.map(directoryAndName), let log = listeners.withLock({ $0[directory] }) {
      slot(of: file).pointee = .passRetained(OpenFile(directory: directory, name: name, log: log))
      if isNew { log(.created(name)) }
    }
    return code
  }
  layer.pointee.xDelete = { _, path, syncDirectory in
    let (directory, name) = directoryAndName(path!)
    listeners.withLock { $0[directory] }?(.deleted(name, isDurable: syncDirectory != 0))
    return original.pointee.xDelete(original, path, syncDirectory)
  }
  return layer
}()

private nonisolated(unsafe) let recordingMethods: UnsafeMutablePointer<sqlite3_io_methods> = {
  let recording = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
  var own = sqlite3_io_methods()
  // Version 2 has the shared memory of a write-ahead log's index, which never reaches the storage.
  own.iVersion = 2
  own.xShmMap = { methods(of: $0).xShmMap(original(of: $0), $1, $2, $3, $4) }
  own.xShmLock = { methods(of: $0).xShmLock(original(of: $0), $1, $2, $3) }
  own.xShmBarrier = { methods(of: $0).xShmBarrier(original(of: $0)) }
  own.xShmUnmap = { methods(of: $0).xShmUnmap(original(of: $0), $1) }
  own.xClose = { file in
    slot(of: file).pointee?.release()
    return methods(of: file).xClose(original(of: file))
  }
  own.xRead = { file, bytes, count, offset in
    if let open = slot(of: file).pointee?.takeUnretainedValue() {
      readCounts.withLock { $0[open.directory, default: 0] += 1 }
    }
    return methods(of: file).xRead(original(of: file), bytes, count, offset)
  }
  own.xWrite = { file, bytes, count, offset in
    if isDeaf(file) { return SQLITE_OK }
    let written = Array(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
    report(file) { .wrote($0, offset: Int(offset), written) }
    return methods(of: file).xWrite(original(of: file), bytes, count, offset)
  }
  own.xTruncate = { file, size in
    if isDeaf(file) { return SQLITE_OK }
    report(file) { .truncated($0, Int(size)) }
    return methods(of: file).xTruncate(original(of: file), size)
  }
  own.xSync = { file, flags in
    if isDeaf(file) { return SQLITE_OK }
    let code = methods(of: file).xSync(original(of: file), flags)
    report(file) { .synced($0) }
    return code
  }
  own.xFileSize = { methods(of: $0).xFileSize(original(of: $0), $1) }
  own.xLock = { methods(of: $0).xLock(original(of: $0), $1) }
  own.xUnlock = { methods(of: $0).xUnlock(original(of: $0), $1) }
  own.xCheckReservedLock = { methods(of: $0).xCheckReservedLock(original(of: $0), $1) }
  own.xFileControl = { methods(of: $0).xFileControl(original(of: $0), $1, $2) }
  own.xSectorSize = { methods(of: $0).xSectorSize(original(of: $0)) }
  own.xDeviceCharacteristics = { methods(of: $0).xDeviceCharacteristics(original(of: $0)) }
  recording.initialize(to: own)
  return recording
}()
