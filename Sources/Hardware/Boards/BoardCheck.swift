// SPDX-License-Identifier: Apache-2.0
import FrontPanel
import GPIO
import Secrets
import USBKeypad

/// Tests the hardware that a profile configures: opens each line and device and lights each LED in turn. Restores
/// everything afterwards.
package struct BoardCheck: Sendable {
  package struct CheckResult: Sendable, Equatable {
    package let subject: String
    package let text: String
    /// What to do about it; nil if there is no fault.
    package let next: String?
  }

  /// How long an LED is lit or the buzzer sounds, long enough for the user to notice.
  private static let noticeable = Duration.milliseconds(700)
  /// The time limit for finding the keypad on the bus.
  private static let patience = Duration.seconds(5)

  private let findings: AsyncStream<CheckResult>.Continuation

  private func notify(_ finding: CheckResult) { findings.yield(finding) }

  /// Runs the check and yields each finding as soon as it is known.
  /// - Parameter nodes: the directory of device nodes in which those that map registers are looked for.
  package static func findings(of profile: BoardProfile, nodes: String = "/dev") -> AsyncStream<CheckResult> {
    AsyncStream { continuation in
      Task {
        await BoardCheck(findings: continuation).run(profile, nodes)
        continuation.finish()
      }
    }
  }

  private func run(_ profile: BoardProfile, _ nodes: String) async {
    if let lines = profile.lines {
      await check(lines, profile.colors)
      for node in RegisterNodes.open(in: nodes) {
        notify(
          CheckResult(
            subject: "registers", text: "\(node) is not restricted to root: other users can simulate presses",
            next: RegisterNodes.remedy))
      }
    } else {
      notify(CheckResult(subject: "board", text: "simulated: there is nothing to open", next: nil))
    }
    if let usb = profile.keypad?.usb {
      await check(usb)
    } else if profile.lines != nil {
      notify(
        CheckResult(subject: "keypad", text: "the profile has none: requests that require a PIN fail", next: nil)
      )
    }
  }

  private func check(_ lines: BoardProfile.Lines, _ colors: BoardProfile.Colors) async {
    let trial: LineTrial
    do {
      trial = try LineTrial(chip: lines.chips)
      notify(CheckResult(subject: "chip", text: "\(trial.path), label \"\(trial.label)\"", next: nil))
    } catch { return notify(CheckResult(subject: "chip", text: "\(error)", next: error.remedy)) }
    check("button", lines.button, trial)
    if let deny = lines.denyButton { check("deny_button", deny, trial) }
    let names = colors == .rgb ? ["led.red", "led.green", "led.blue"] : ["led.light"]
    for (name, line) in zip(names, lines.led) { await check(name, line, "was lit", trial) }
    if let buzzer = lines.buzzer { await check("buzzer", buzzer, "sounded", trial) }
  }

  private func check(_ subject: String, _ line: InputLine, _ trial: LineTrial) {
    do {
      if try trial.isActive(line) {
        notify(
          CheckResult(
            subject: subject, text: "line \(line.offset) is active: the button seems to be held",
            next: "release the button; if it is not held, check the wiring, bias and active_low"))
      } else {
        notify(CheckResult(subject: subject, text: "line \(line.offset), up", next: nil))
      }
    } catch { notify(CheckResult(subject: subject, text: "\(error)", next: error.remedy)) }
  }

  private func check(
    _ subject: String, _ line: OutputLine, _ deed: String, _ trial: LineTrial
  ) async {
    do {
      try await trial.drive(line, for: Self.noticeable)
      notify(CheckResult(subject: subject, text: "line \(line.offset) \(deed)", next: nil))
    } catch { notify(CheckResult(subject: subject, text: "\(error)", next: error.remedy)) }
  }

  /// Claims the keypad as the service does, but attaches the kernel's drivers again, because the operator may type on
  /// it.
  private func check(_ usb: BoardProfile.Keypad.USB) async {
    do throws(USBKeypadError) {
      let present = try describeHIDDevices().filter(usb.selection.matches)
      guard let first = present.first else { throw .notPluggedIn }
      let keypad = try USBKeypad(usb.selection, givesBack: true, into: IgnoringKeySink())
      defer { keypad.close() }
      let end = ContinuousClock.now + Self.patience
      while keypad.trouble != nil, ContinuousClock.now < end, (try? await Task.sleep(for: .milliseconds(20))) != nil {}
      if let trouble = keypad.trouble { throw trouble }
      let others =
        present.count > 1 ? "; \(present.count - 1) more would be claimed too; only the first is read" : ""
      notify(CheckResult(subject: "keypad", text: "\(first.identity) at \(first.port)\(others)", next: nil))
    } catch { notify(CheckResult(subject: "keypad", text: error.text(for: usb.selection), next: error.remedy)) }
  }
}

/// A sink that discards all keys: the check does not read what is typed.
private struct IgnoringKeySink: KeySink {
  func press(_ key: KeyPress) {}
  func keypadIsUnavailable(_ why: String) {}
  func keypadIsAvailable() {}
}
