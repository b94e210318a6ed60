// SPDX-License-Identifier: Apache-2.0
import GPIO
import Testing
import USBKeypad

@testable import Boards

@Suite(.timeLimit(.minutes(1))) struct RemediesTests {
  @Test("No advice is to join the group root") func root() {
    #expect(!GPIOError.notPermitted(path: "/dev/gpiochip0", group: "root").remedy.contains("join"))
    #expect(!USBKeypadError.notPermitted(path: "/dev/bus/usb/001/002", group: "root").remedy.contains("join"))
    #expect(GPIOError.notPermitted(path: "/dev/gpiochip0", group: "gpio").remedy.contains("join the group gpio"))
  }
}
