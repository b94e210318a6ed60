// SPDX-License-Identifier: Apache-2.0

/// Errors of the state store. A call that throws has changed nothing.
package enum StateStoreError: Error, Equatable, Sendable, CustomStringConvertible {
  /// Disk full, read-only, wrong file mode, or I/O error.
  /// - Parameter call: the failed call, or the path that was refused.
  case io(call: String, reason: String)
  /// A stored value is not authentic or cannot be decoded: wrong device secret, tampering or damaged storage.
  case corrupt(Subject)
  /// A later version wrote it, in a format that this one does not know.
  case newerFormat(Int, known: Int)
  /// An earlier version wrote it, and this one, on trial after an update, cannot use it without making it unreadable
  /// for the version before.
  case olderFormat(Int, known: Int)
  /// There is no such item.
  case notFound(Subject)
  /// The stored item does not allow the change.
  case conflict(Subject, Conflict)

  /// What an error is about.
  package enum Subject: Equatable, Sendable {
    case account(AccountID)
    /// An account of this name at this server.
    case accountAt(AccountID, TokenServerID)
    /// The account that the server knows by this profile.
    case profile(String, TokenServerID)
    /// The keys or other credentials of an account.
    case keys(of: AccountID)
    case serverCertificate(of: AccountID)
    case policies(of: AccountID)
    /// The PIN of an account that the token verifies.
    case pin(of: AccountID)
    case pinCount(of: AccountID)
    case oneTimePasswords(of: AccountID)
    case server(TokenServerID)
    /// The server that an account refers to.
    case serverOf(AccountID, TokenServerID)
    /// A kind of server that this version does not know.
    case kind(String, TokenServerID)
    /// The credentials of this device at a server.
    case registration(at: TokenServerID)
    case certificatePins(of: TokenServerID)
    /// By the transaction as stored, which may be malformed.
    case intent(String)
    case message(String)
    case auditHead
    /// The head of the second audit chain.
    case retainedAuditHead
    case auditEntry(Int64)
    /// The record that shows whether the device secret is that of the vault.
    case canary
    /// The device secret of the vault in this directory.
    /// - Parameters:
    ///   - file: the path where it is looked for.
    ///   - credential: the name of the systemd credential that is looked for.
    case deviceSecret(directory: String, file: String, credential: String)
    /// An encrypted record; its key does not decrypt it.
    case encryptedRecord
    /// The file, with SQLite's message.
    case database(String)
    /// The file at this path, which has no bytes.
    case emptyDatabase(String)
  }

  package enum Conflict: Equatable, Sendable {
    /// The name belongs to another account.
    case nameTaken
    /// The item exists and is not replaced.
    case exists
    /// Another command changed the item since it was read: retry.
    case changedMeanwhile
    /// The account is at another token server.
    case atAnotherServer
    /// The enrollment is complete.
    case enrolled
    /// There is a later enrollment under the same name.
    case enrolledAgain
    /// It has the encoding of an earlier version, and was opened without the program that decodes it.
    case formerEncoding
  }

  package var description: String {
    switch self {
    case .io(let call, let reason): "the vault cannot be written or read: \(call): \(reason)"
    case .corrupt(.deviceSecret(let directory, let file, let credential)):
      "no device secret for the vault in \(directory): neither \(file) nor the systemd credential \(credential) exists. "
        + "Where the service reads it from the credential, give that to this command, too: docs/usage.md, \"As a service\""
    case .corrupt(.account(let account)):
      "the record of account \(account) is damaged, and cannot be used: remove the account "
        + "(`approval-token remove \(account)`) and enroll it again"
    case .corrupt(.emptyDatabase(let path)):
      "the vault is damaged: \(path) is empty (during a first start, try again). What was in it is lost: start the "
        + "service, or enroll again, which makes a new vault (docs/usage.md, \"Damaged storage\")"
    case .corrupt(.auditEntry(let sequence)): "audit entry \(sequence) is damaged, and cannot be read"
    case .corrupt(let subject): "the vault is damaged, or belongs to another device secret: \(subject)"
    case .newerFormat(let format, let known):
      "the vault has format \(format), and this version reads formats up to \(known): a later version wrote it. Install "
        + "that one or a later one; nothing was changed"
    case .olderFormat(let format, let known):
      "the vault has format \(format), and this version, on trial after an update, keeps formats from \(known) on: "
        + "install the version before this one first; nothing was changed"
    case .notFound(let subject): "the vault has no \(subject)"
    case .conflict(let subject, let conflict): "the vault was not changed: \(subject) \(conflict)"
    }
  }
}

extension StateStoreError.Subject: CustomStringConvertible {
  package var description: String {
    switch self {
    case .account(let account): "account \(account)"
    case .accountAt(let account, let server): "account \(account) at token server \(server)"
    case .profile(let profile, let server): "account with profile \(profile) at token server \(server)"
    case .keys(let account): "keys of account \(account)"
    case .serverCertificate(let account): "token server's certificate of account \(account)"
    case .policies(let account): "policies of account \(account)"
    case .pin(let account): "PIN of account \(account)"
    case .pinCount(let account): "count of wrong PINs of account \(account), which was written and is missing"
    case .oneTimePasswords(let account): "one-time passwords of account \(account)"
    case .server(let server): "token server \(server)"
    case .serverOf(let account, let server): "token server \(server) of account \(account), which is missing"
    case .kind(let kind, let server): "token server \(server), whose kind \(kind) this version does not know"
    case .registration(let server): "registration with \(server)"
    case .certificatePins(let server): "certificate pins of \(server)"
    case .intent(let transaction): "answer being sent for \(transaction)"
    case .message(let transaction): "message \(transaction)"
    case .auditHead: "head of the audit chain"
    case .retainedAuditHead: "head of the kept audit entries"
    case .auditEntry(let sequence): "audit entry \(sequence)"
    case .canary: "canary (it was created with another device secret, or its canary was changed)"
    case .deviceSecret(let directory, _, _): "device secret of the vault in \(directory)"
    case .encryptedRecord: "encrypted record, which is not authentic"
    case .database(let reason): "database file: \(reason)"
    case .emptyDatabase(let path): "database file \(path), which is empty"
    }
  }
}

extension StateStoreError.Conflict: CustomStringConvertible {
  package var description: String {
    switch self {
    case .nameTaken: "is the name of another account; choose another name"
    case .exists: "exist already, and are not replaced"
    case .changedMeanwhile: "was changed by another command meanwhile; retry"
    case .atAnotherServer: "is at another token server"
    case .enrolled: "is enrolled completely"
    case .enrolledAgain: "was enrolled again meanwhile"
    case .formerEncoding: "has the encoding of an earlier version, which this program cannot decode"
    }
  }
}
