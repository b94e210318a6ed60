// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

/// The output of a script, as JSON on its standard output: `status`, and optionally `data` and `registration_data`.
package struct ScriptResult: Sendable, Equatable {
  package static let largestOutput = 65_536
  package static let largestData = 4096
  package static let largestRegistrationData = 16_384

  package let status: Int
  package let data: String
  package let registrationData: String?
  /// Whether the script was started and gave no result of its own.
  private let isMissing: Bool

  package init(status: Int, data: String = "", registrationData: String? = nil) {
    self.init(status, data, registrationData, isMissing: false)
  }

  private init(_ status: Int, _ data: String, _ registrationData: String?, isMissing: Bool) {
    self.status = status
    self.data = data
    self.registrationData = registrationData
    self.isMissing = isMissing
  }

  /// For a script that was started, and exceeded a limit or ended with an error.
  package static let failed = ScriptResult(executionFailed, "", nil, isMissing: true)

  private struct Output: Decodable {
    var status: Int
    var data: String?
    var registrationData: String?

    enum CodingKeys: String, CodingKey {
      case status, data
      case registrationData = "registration_data"
    }
  }

  /// The result for any output; 3004 for output that is not a result.
  package init(parsing bytes: [UInt8]) {
    guard bytes.count <= Self.largestOutput, let output = try? JSON.decode(Output.self, from: bytes),
      (2000...5999).contains(output.status), (output.data ?? "").utf8.count <= Self.largestData,
      (output.registrationData ?? "").utf8.count <= Self.largestRegistrationData
    else {
      self.init(Self.badResult, "", nil, isMissing: true)
      return
    }
    self.init(status: output.status, data: output.data ?? "", registrationData: output.registrationData)
  }

  /// The script does not exist.
  package static let missing = 3000
  /// The script ended with another exit status than 0, was killed at its time limit, or could not be started.
  package static let executionFailed = 3001
  /// The file is not executable.
  package static let notExecutable = 3002
  package static let badResult = 3004

  package var info: CustomInfo { CustomInfo(status: status, data: data) }

  package enum Class: Sendable {
    case accepted, mayRetry, final
    /// The script was not started, or says that it has not compared the data.
    case notRun
    /// The script was started and gave no result: it may have compared the data.
    case noResult
  }

  package var outcome: Class {
    guard !isMissing else { return .noResult }
    return switch status {
    case 2000...2999: .accepted
    case 4000...4999: .mayRetry
    case 5000...5999: .final
    default: .notRun
    }
  }
}
