// SPDX-License-Identifier: Apache-2.0
import GPIO
import Glibc

/// A program that lights the bench's red LED, says so, and then waits to be killed: what a crash leaves behind.
@main struct BenchProbe {
  static func main() {
    // A test that fails does not kill it.
    alarm(60)
    let bank = LineBank(
      chip: ["bench-panel"], inputs: [InputLine(offset: 0, bias: .pullUp, isActiveLow: true)],
      outputs: [OutputLine(offset: 2)]
    ) { _, event in
      guard case .opened = event else { return }
      puts("open")
      fflush(nil)
    }
    bank.set(0, true)
    while true { pause() }
  }
}
