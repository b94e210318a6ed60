// SPDX-License-Identifier: Apache-2.0
import CBench
import Glibc

/// An object that waits for events of a descriptor.
protocol Pollable: AnyObject {
  func ready(_ events: UInt32)
}

/// One thread with one epoll set, to keep the load client's own processor use low.
final class Loop {
  private let epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
  private var watched: [Int32: (owner: any Pollable, events: UInt32)] = [:]
  private var descriptors = [Int32](repeating: 0, count: 256)
  private var events = [UInt32](repeating: 0, count: 256)

  deinit { close(epoll) }

  func watch(_ descriptor: Int32, for events: UInt32, by owner: any Pollable) {
    let former = watched.updateValue((owner, events), forKey: descriptor)
    guard former?.events != events else { return }
    let operation = former == nil ? EPOLL_CTL_ADD : EPOLL_CTL_MOD
    guard bench_watch(epoll, operation, descriptor, events) == 0 else { fatalError("epoll_ctl: errno \(errno)") }
  }

  func forget(_ descriptor: Int32) {
    watched[descriptor] = nil
    _ = bench_watch(epoll, EPOLL_CTL_DEL, descriptor, 0)
  }

  /// Handles the ready descriptors, and waits for events until `deadline`.
  func turn(until deadline: Instant) {
    let left = max(0, deadline.nanoseconds - Instant.now.nanoseconds)
    let count = bench_wait(epoll, &descriptors, &events, Int32(descriptors.count), Int(left))
    for index in 0..<max(0, Int(count)) { watched[descriptors[index]]?.owner.ready(events[index]) }
  }

  func run(for seconds: Double, until isDone: () -> Bool = { false }) {
    let deadline = Instant.now + seconds
    while !isDone(), Instant.now < deadline { turn(until: deadline) }
  }
}

let readable = UInt32(EPOLLIN.rawValue)
let writable = UInt32(EPOLLOUT.rawValue)
