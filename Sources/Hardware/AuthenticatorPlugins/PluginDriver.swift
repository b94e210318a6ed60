// SPDX-License-Identifier: Apache-2.0
import Glibc
package import MobileAuth
import Threads

/// The driver of an authenticator whose data another program produces.
package struct PluginDriver: AuthenticatorDriver {
  let configuration: PluginConfiguration
  private let patience: PluginPatience

  package init(_ configuration: PluginConfiguration) { self.init(configuration, patience: PluginPatience()) }

  init(_ configuration: PluginConfiguration, patience: PluginPatience) {
    self.configuration = configuration
    self.patience = patience
  }

  /// The driver of a configuration.
  package static func make(_ configuration: PluginConfiguration) -> any AuthenticatorDriver {
    let plugin = PluginDriver(configuration)
    return plugin.kind == .biometric ? FingerprintDriver(plugin) : plugin
  }

  package var authenticator: String { configuration.authenticator }
  package var kind: Authenticator.Kind { configuration.kind == .custom ? .custom : .biometric }
  package var input: DriverInput { .external(hold: configuration.needsHold) }

  package var isAvailable: Bool {
    switch configuration.program {
    case .socket(let path):
      var status = stat()
      return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK && access(path, R_OK | W_OK) == 0
    case .command(let command): return access(command[0], X_OK) == 0
    }
  }

  package func events(for call: DriverCall) -> AsyncStream<DriverEvent> {
    AsyncStream { continuation in
      let use = PluginUse(configuration, patience: patience)
      continuation.onTermination = { _ in use.cancel() }
      let hasStarted = detachThread {
        use.run(call) { continuation.yield($0) }
        continuation.finish()
      }
      if !hasStarted {
        continuation.yield(.failed("the system has no thread left"))
        continuation.finish()
      }
    }
  }
}
