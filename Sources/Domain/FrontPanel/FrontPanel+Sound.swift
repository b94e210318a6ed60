// SPDX-License-Identifier: Apache-2.0
import MobileAuth

extension FrontPanel {
  /// Plays the sound of an indication once, if it has one and the board has a buzzer.
  func sound(_ indication: Indication) {
    guard let sounder, let pattern = indication.row.sound else { return }
    sounding?.cancel()
    soundings += 1
    let (number, start) = (soundings, clock.now)
    sounding = Task {
      var next: Duration? = .zero
      while let elapsed = next, (try? await clock.sleep(until: start + elapsed)) != nil, number == soundings {
        sounder.sound(pattern.isLit(after: elapsed))
        next = pattern.nextChange(after: elapsed)
      }
      // A newer sound must not be switched off.
      if number == soundings { sounder.sound(false) }
    }
  }
}
