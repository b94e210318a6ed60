// SPDX-License-Identifier: Apache-2.0
import AuthenticatorPlugins
import Boards
import ControlProtocol
import Glibc
import MobileAuth
import TOMLSyntax

extension PluginConfiguration {
  /// The files `*.toml` of the folder `authenticators.d` beside a configuration, sorted by name; none without the
  /// folder.
  static func read(beside file: String) throws(CommandError) -> [PluginConfiguration] {
    let folder = "\(file.lastIndex(of: "/").map { String(file[..<$0]) } ?? ".")/authenticators.d"
    var plugins: [PluginConfiguration] = []
    for name in try names(in: folder) { plugins.append(try read("\(folder)/\(name)")) }
    return plugins
  }

  private static func names(in folder: String) throws(CommandError) -> [String] {
    guard let directory = opendir(folder) else {
      if errno == ENOENT { return [] }
      throw CommandError(.badData, "cannot read \(folder): \(String(cString: strerror(errno)))")
    }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name.hasSuffix(".toml"), !name.hasPrefix(".") { names.append(name) }
    }
    return names.sorted()
  }

  private static func read(_ file: String) throws(CommandError) -> PluginConfiguration {
    let text = try Configuration.text(of: file)
    do { return try parse(text) } catch let error as TOMLSyntax.ParseError {
      throw CommandError(.badData, "\(file): not TOML: \(error)")
    } catch let error as TableReader.TableError { throw CommandError(.badData, "\(file): \(error.why)") } catch {
      throw CommandError(.badData, "\(file): \(error)")
    }
  }

  private static func parse(_ text: String) throws -> PluginConfiguration {
    var reader = TableReader(try TOMLSyntax.parse(text))
    return try PluginConfiguration(&reader)
  }
}

extension Configuration {
  /// - Throws: if there are too many authenticators, or two sources for one.
  func requireDistinctAuthenticators() throws(CommandError) {
    let single = [simulatedKey, simulatedBadge, simulatedFingerprint].compactMap(\.self)
    let all = keypadCodes + simulatedAuthenticators + single + plugins.map(\.authenticator)
    guard all.count <= AuthenticatorDrivers.most else {
      throw CommandError(.badData, "at most \(AuthenticatorDrivers.most) authenticators can be configured")
    }
    if let twice = Dictionary(grouping: all, by: \.self).first(where: { $0.value.count > 1 })?.key {
      throw CommandError(.badData, "the authenticator \"\(twice)\" is configured twice")
    }
  }

  /// The drivers of this configuration.
  /// - Parameters:
  ///   - hasKeypad: whether a code can be typed.
  ///   - simulated: the simulated authenticators; nil unless the board is simulated.
  func drivers(hasKeypad: Bool, simulated: SimulatedAuthenticators?) -> AuthenticatorDrivers {
    var drivers: [any AuthenticatorDriver] = plugins.map { PluginDriver.make($0) }
    if hasKeypad { drivers += keypadCodes.map { KeypadCodeDriver($0) } }
    if let simulated {
      drivers += simulatedAuthenticators.map { SimulatedDriver($0, of: simulated) }
      if let simulatedKey { drivers.append(SimulatedDriver(simulatedKey, as: .securityKey, of: simulated)) }
      if let simulatedBadge { drivers.append(SimulatedDriver(simulatedBadge, as: .badge, of: simulated)) }
      if let simulatedFingerprint {
        drivers.append(FingerprintDriver(SimulatedDriver(simulatedFingerprint, as: .fingerprint, of: simulated)))
      }
    }
    return AuthenticatorDrivers(drivers)
  }
}
