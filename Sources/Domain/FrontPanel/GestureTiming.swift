// SPDX-License-Identifier: Apache-2.0
/// Time thresholds of the button. A board profile may change them within the stated bounds.
package struct GestureTiming: Sendable, Equatable {
  /// A press must begin at least this long after the request became active: 0.3 to 5 s.
  package var guardTime = Duration.milliseconds(500)
  /// Held at least this long, then released: accept. 0.5 to 3 s.
  package var acceptHold = Duration.milliseconds(800)
  /// The maximum time between the beginnings of the two presses that deny. 0.3 to 1 s.
  package var doublePress = Duration.milliseconds(600)
  /// Held at least this long, then released: deny and report "not me". 4 to 9 s.
  package var reportHold = Duration.seconds(6)
  /// Held longer than this: the button is stuck. 10 to 60 s.
  package var stuck = Duration.seconds(10)

  package init() {}
}
