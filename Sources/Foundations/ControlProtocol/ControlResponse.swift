// SPDX-License-Identifier: Apache-2.0
import JSONValues

/// One line of the service's answer. It may contain JSON of a token server, with any numbers.
package enum ControlResponse<Answer: Decodable> {
  /// The current step, for the waiting user.
  case progress(String)
  case answer(Answer)
  case failure(CommandError)

  /// - Throws: `.badData` if the line is none of these.
  package init(line: [UInt8]) throws(CommandError) {
    if let failure = try? JSONMessage.decode(ControlFailure.self, from: line, numbers: nil) {
      self = .failure(
        CommandError(
          CommandError.Code(rawValue: failure.code) ?? .refused, failure.error, number: failure.number,
          info: failure.info, underlyingError: failure.underlyingError))
    } else if let progress = try? JSONMessage.decode(ControlProgress.self, from: line, numbers: nil) {
      self = .progress(progress.progress)
    } else {
      do { self = .answer(try JSONMessage.decode(Answer.self, from: line, numbers: nil)) } catch {
        throw CommandError(.badData, "the service's answer is not understood: \(Answer.self): \(error.why)")
      }
    }
  }
}
