// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Finds board profiles by name or by file.
package enum BoardCatalog {
  package enum CatalogError: Error, Equatable, Sendable, CustomStringConvertible {
    case unknown(String, searched: [String])
    case unreadable(String)
    case invalid(BoardProfile.ProfileError)

    package var description: String {
      switch self {
      case .unknown(let name, let searched):
        all().isEmpty
          ? noProfiles
          : "no board \"\(name)\"; looked in \(searched.joined(separator: ", ")). `approval-token board list` shows all"
      case .unreadable(let file): "cannot read the board profile \(file)"
      case .invalid(let invalid): invalid.description
      }
    }
  }

  /// What to say if no profile is on the search path.
  package static var noProfiles: String {
    "no board profiles in \(searchPath.joined(separator: ", ")): copy the folder `boards` of the sources to one of these, "
      + "or name it in the environment variable APPROVAL_TOKEN_BOARDS"
  }

  /// - Parameter nameOrFile: the name of a folder on the search path, or a path (contains `/` or ends in `.toml`).
  package static func profile(_ nameOrFile: String) throws(CatalogError) -> BoardProfile {
    if nameOrFile.contains("/") || nameOrFile.hasSuffix(".toml") { return try read(nameOrFile) }
    for folder in searchPath {
      let file = "\(folder)/\(nameOrFile)/board.toml"
      if access(file, F_OK) == 0 { return try read(file) }
    }
    throw .unknown(nameOrFile, searched: searchPath)
  }

  /// All profiles on the search path, sorted by name. If a name occurs several times, the first folder of the search
  /// path applies.
  package static func all() -> [(file: String, profile: Result<BoardProfile, CatalogError>)] {
    var found: [String: String] = [:]
    for folder in searchPath {
      guard let directory = opendir(folder) else { continue }
      defer { closedir(directory) }
      while let entry = readdir(directory) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) {
          String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        let file = "\(folder)/\(name)/board.toml"
        if found[name] == nil, !name.hasPrefix("."), access(file, F_OK) == 0 { found[name] = file }
      }
    }
    return found.sorted { $0.key < $1.key }.map { _, file in
      (file, Result { () throws(CatalogError) in try read(file) })
    }
  }

  private static var searchPath: [String] {
    var folders: [String] = []
    if let own = getenv("APPROVAL_TOKEN_BOARDS") { folders.append(String(cString: own)) }
    folders += ["/etc/approval-token/boards", "/usr/share/approval-token/boards"]
    // In a checkout the program is in .build/…/debug, so look in every folder above the program.
    var path = [CChar](repeating: 0, count: Int(PATH_MAX))
    let length = readlink("/proc/self/exe", &path, path.count)
    guard length > 0 else { return folders }
    var folder = String(decoding: path[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self)
    while let slash = folder.lastIndex(of: "/"), slash > folder.startIndex {
      folder = String(folder[..<slash])
      if access(folder + "/boards", F_OK) == 0 { folders.append(folder + "/boards") }
    }
    return folders
  }

  private static func read(_ file: String) throws(CatalogError) -> BoardProfile {
    guard let stream = fopen(file, "re") else { throw .unreadable(file) }
    defer { fclose(stream) }
    // A profile has about one page of text. Reject files of 64 KiB or more.
    var text = [UInt8](repeating: 0, count: 65_536)
    let count = fread(&text, 1, text.count, stream)
    guard count < text.count, ferror(stream) == 0 else { throw .unreadable(file) }
    do { return try BoardProfile(parsing: String(decoding: text[..<count], as: UTF8.self), file: file) } catch {
      throw .invalid(error)
    }
  }
}
