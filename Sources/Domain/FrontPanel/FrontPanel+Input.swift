// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Secrets

/// Handling of button and keypad events.
extension FrontPanel {
  func receive(_ event: ButtonEvent) {
    switch event {
    case .down(let role, let moment):
      isDown = true
      endTrouble()
      if armed == nil { reportIgnored() }
      report(armed?.gestures.press(role, at: moment) ?? [])
    case .up(let moment):
      isDown = false
      endTrouble()
      report(armed?.gestures.release(at: moment) ?? [])
    case .void(let why):
      forgetPress()
      armed?.continuation.yield(.void(why))
    case .unavailable(let why):
      buttonTrouble = why
      mayBeUnseen = true
      forgetPress()
      armed?.continuation.yield(.dark(why))
    }
    schedule()
  }

  /// What is held is no gesture. Treats the button as held until a release is seen.
  private func forgetPress() {
    isDown = true
    armed?.gestures.forget(at: clock.now)
    // The LED may say what a release would do, or that the button is stuck.
    if armed?.isButtonTouched == true || showing == .seeLog { lightAgain() }
    armed?.isButtonTouched = false
    armed?.reportTouch()
  }

  /// The chip is back, and the LED with it.
  private func endTrouble() {
    guard buttonTrouble != nil else { return }
    buttonTrouble = nil
    guard armed != nil else { return }
    mayBeUnseen = false
    finish(.lit)
    lightAgain()
  }

  func receive(_ event: KeypadEvent) {
    keypadEvents += 1
    switch event {
    case .key(let key, let moment):
      if let events = armed?.entry.key(key, at: moment) { report(events) } else { reportIgnored() }
    case .unavailable(let why):
      keypadTrouble = "keypad: \(why)"
      report(armed?.entry.wipe() ?? [])
      if armed?.entry.wantsDigits == true { armed?.continuation.yield(.unavailable("keypad: \(why)")) }
    case .available:
      // The keypad may be a different one. Do not continue an entry that began on the previous keypad.
      keypadTrouble = nil
      report(armed?.entry.wipe() ?? [])
    }
    schedule()
  }

  func report(_ events: [GestureRecognizer.Event]) {
    for event in events {
      switch event {
      case .touched:
        armed?.isButtonTouched = true
        armed?.reportTouch()
      case .released:
        armed?.isButtonTouched = false
        lightAgain()
        armed?.reportTouch()
      case .shortPress: armed?.continuation.yield(.shortPress)
      case .tooEarly: reportIgnored()
      // The LED keeps showing that digits are typed.
      case .ineffective: if armed?.entry.isTyping != true { reportIgnored() }
      case .longEnoughToAccept: light(.releaseToAccept)
      case .longEnoughToReport: light(armed?.confirmsLongest == true ? .releaseToAccept : .releaseToReport)
      case .stuck:
        armed?.reportStuck()
        light(.seeLog)
      case .gesture(let gesture): finish(.gesture(gesture))
      }
    }
  }

  func report(_ events: [EntryRecognizer.Event]) {
    for event in events {
      if event.isSubmission { player.countEntry() }
      switch event {
      case .keyed: break
      case .tooEarly: reportIgnored()
      case .touched, .released:
        lightAgain()
        if armed?.reportsTyping == true { armed?.continuation.yield(.typing(event == .touched)) }
        armed?.reportTouch()
      case .wrongLength: flash(.pinRefused(rule: 4))
      case .entered(let digits):
        guard let buttonTrouble else {
          finish(.entered(digits))
          break
        }
        // The LED shares the chip with the button and may have been dark, so the user might not have seen the request.
        // Reject the entry.
        armed?.continuation.yield(.dark(buttonTrouble))
        lightAgain()
        armed?.reportTouch()
      case .enteredNothing: finish(.enteredNothing)
      case .canceled: finish(.gesture(Gesture(.cancelKeys, held: .zero)))
      }
    }
    // Enter and cancel have their own indications and need no key feedback.
    guard settings.feedback == .eachKey, events.contains(.keyed), armed != nil, !events.contains(.wrongLength)
    else { return }
    lightAgain(afterDark: .milliseconds(80))
  }
}
