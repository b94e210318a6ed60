// SPDX-License-Identifier: Apache-2.0
import Boards
package import ControlProtocol
import Cryptography
import MobileAuth
import ServerBackends

extension CommandError {
  init(_ fault: TokenServerError) {
    switch fault {
    case .noNetwork, .unreachable, .rateLimited: self.init(.unavailable, fault.explanation, number: fault.number)
    case .untrusted(let why):
      self.init(
        .refused,
        "\(why). If the certificate's issuer is a private authority, give its PEM file with --authorities, or under "
          + "[tls] in the configuration; or give the hash of the server's key with --pin, unless the URI contains it",
        number: fault.number)
    case .authenticatorFailed(let failure):
      self.init(.refused, fault.explanation, number: fault.number, info: failure.info.map { ScriptInfo($0) })
    default: self.init(.refused, fault.explanation, number: fault.number)
    }
  }

  init(_ fault: StateStoreError) {
    switch fault {
    case .io, .conflict(_, .changedMeanwhile): self.init(.unavailable, "\(fault)")
    case .corrupt(.deviceSecret), .newerFormat, .olderFormat: self.init(.refused, "\(fault)")
    case .corrupt: self.init(.badData, "\(fault)")
    case .notFound, .conflict: self.init(.usage, "\(fault)")
    }
  }

  private init(_ error: any ReportedError) {
    let code: Code =
      switch error.category {
      case .usage: .usage
      case .badData: .badData
      case .unavailable: .unavailable
      case .refused: .refused
      }
    self.init(code, error.explanation, number: error.number)
  }

  /// Nil for an error that is not reported to the user: a canceled task, an interrupted call.
  package init?(explaining error: any Error) {
    switch error {
    case let failure as CommandError: self = failure
    case let fault as TokenServerError: self.init(fault)
    case let fault as StateStoreError: self.init(fault)
    case let error as any ReportedError: self.init(error)
    case let failure as BoardCatalog.CatalogError:
      if case .unknown = failure { self.init(.usage, "\(failure)") } else { self.init(.badData, "\(failure)") }
    case let ending as PanelDialog.EntryError:
      self.init(
        ending.number == nil ? .unavailable : .refused, ending.explanation, number: ending.number,
        underlyingError: ending.underlyingError)
    case let error as CryptographyError: self.init(.unavailable, "\(error)")
    default: return nil
    }
  }
}

/// The text of any error for the user, without a number.
package func explanation(of error: any Error) -> String { CommandError(explaining: error)?.description ?? "\(error)" }
