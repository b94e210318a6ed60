// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The driver that a prompt asks, and for what.
struct DriverPrompt: Sendable {
  /// How long after a request is shown its driver is asked. A touch or a card that was there before that counts for
  /// nothing, as a press within the panel's guard time.
  static let guardTime = Duration.milliseconds(500)

  /// Nil if the token has none for the authenticator.
  let driver: (any AuthenticatorDriver)?
  let call: DriverCall
  /// How often the driver is asked if it fails, as long as the prompt lasts: a failure must not interrupt others.
  var attempts = 1
}

/// How often each driver of a prompt has failed, also before digits were typed and discarded.
private final class Failures: Sendable {
  private let counts = Mutex<[String: Int]>([:])

  func count(of authenticator: String) -> Int { counts.withLock { $0[authenticator, default: 0] } }
  func add(_ authenticator: String) { counts.withLock { $0[authenticator, default: 0] += 1 } }
}

extension Panel {
  /// The events of a prompt, with those of drivers that are asked at the same time, while no digits are typed: who has
  /// begun to type has chosen the PIN. While the LED is dark, none is asked. The stream ends with the panel's; ending
  /// its consumption cancels all.
  func events(
    for prompt: Prompt, asking questions: [DriverPrompt], in environment: TokenEnvironment
  ) -> AsyncStream<PanelEvent> {
    let events = events(for: prompt)
    guard !questions.isEmpty else { return events }
    let (merged, continuation) = AsyncStream.makeStream(of: PanelEvent.self)
    let failures = Failures()
    let ask = {
      Task {
        await withDiscardingTaskGroup { group in
          for question in questions {
            group.addTask {
              await question.ask(in: environment, failures) {
                continuation.yield(.driver($0, of: question.call.authenticator))
              }
            }
          }
        }
      }
    }
    let task = Task {
      var asking = ask()
      var isDark = false
      for await event in events {
        switch event {
        case .typing(let isTyping):
          asking.cancel()
          if !isTyping, !isDark { asking = ask() }
        case .dark:
          asking.cancel()
          isDark = true
        default: break
        }
        continuation.yield(event)
      }
      asking.cancel()
      continuation.finish()
    }
    continuation.onTermination = { _ in task.cancel() }
    return merged
  }
}

extension DriverPrompt {
  /// Reports the events of the driver up to its answer, or to its last failure.
  fileprivate func ask(
    in environment: TokenEnvironment, _ failures: Failures, _ report: @Sendable (DriverEvent) -> Void
  ) async {
    var pause = Self.guardTime
    while failures.count(of: call.authenticator) < attempts {
      guard (try? await environment.sleep(for: pause)) != nil else { return }
      pause = Self.guardTime + Handler.rearmPause
      guard let driver else { return report(.failed("this token has no driver for it")) }
      var failure = "it ended without an answer"
      for await event in driver.events(for: call) {
        if case .failed(let why) = event {
          failure = why
          break
        }
        // The use is over, also of what the driver has said already.
        if Task.isCancelled { return }
        report(event)
        if event.isAnswer { return }
      }
      if Task.isCancelled { return }
      failures.add(call.authenticator)
      report(.failed(failure))
    }
  }
}
