// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

/// What is stored for a request that an answer names. It was open when the answer arrived.
package struct AnsweredRequest: Sendable {
  package let transaction: Transaction
  /// What the device was asked.
  package let content: ApprovalRequest
  package let profile: Profile
}
