// SPDX-License-Identifier: Apache-2.0
import CoreMetrics
import Testing

@testable import TokenServerMetrics

/// The text format of Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats/
@Suite("Metrics", .timeLimit(.minutes(1)), .mayBlock) struct MetricsTests {
  private let registry = PrometheusRegistry()

  @Test("Counters and gauges, sorted, with help texts") func counters() {
    Counter(label: "b_total", dimensions: [("z", "1"), ("a", "x")], factory: registry).increment(by: 2)
    Counter(label: "b_total", dimensions: [("a", "x"), ("z", "1")], factory: registry).increment()
    Counter(label: "b_total", dimensions: [("a", "w"), ("z", "1")], factory: registry).increment()
    let gauge = Meter(label: "a.size", dimensions: [], factory: registry)
    gauge.set(7)
    gauge.decrement(by: 0.5)
    #expect(
      registry.text(["b_total": "Two\nlines"]) == """
        # TYPE a_size gauge
        a_size 6.5
        # HELP b_total Two\\nlines
        # TYPE b_total counter
        b_total{a="w",z="1"} 1
        b_total{a="x",z="1"} 3

        """)
  }

  @Test("A timer is a cumulative histogram in seconds") func histogram() {
    let timer = Timer(label: "t_seconds", dimensions: [("route", "/a")], factory: registry)
    for milliseconds in [5, 6, 999, 1_000_000] { timer.recordMilliseconds(milliseconds) }
    let lines = registry.text().split(separator: "\n")
    #expect(lines.first == "# TYPE t_seconds histogram")
    #expect(lines.contains(#"t_seconds_bucket{route="/a",le="0.005"} 1"#))
    #expect(lines.contains(#"t_seconds_bucket{route="/a",le="0.01"} 2"#))
    #expect(lines.contains(#"t_seconds_bucket{route="/a",le="1"} 3"#))
    #expect(lines.contains(#"t_seconds_bucket{route="/a",le="120"} 3"#))
    #expect(lines.contains(#"t_seconds_bucket{route="/a",le="+Inf"} 4"#))
    #expect(lines.contains(#"t_seconds_sum{route="/a"} 1001.01"#) && lines.contains(#"t_seconds_count{route="/a"} 4"#))
  }

  @Test("Label values are escaped") func escapes() {
    Counter(label: "c", dimensions: [("l", "a\"b\\c\nd")], factory: registry).increment()
    #expect(registry.text().hasSuffix(#"c{l="a\"b\\c\nd"} 1"# + "\n"))
  }

  @Test("A counter stays at its maximum and never shrinks") func bounds() {
    let counter = Counter(label: "c", dimensions: [], factory: registry)
    counter.increment(by: Int64.max)
    counter.increment(by: 5)
    counter.increment(by: -3)
    #expect(registry.text().hasSuffix("c \(Int64.max)\n"))
  }

  @Test("The number of series is limited") func limit() {
    for number in 0..<(PrometheusRegistry.mostSeries + 50) {
      Counter(label: "c", dimensions: [("n", "\(number)")], factory: registry).increment()
    }
    #expect(registry.all.count == PrometheusRegistry.mostSeries)
  }

  @Test("The same name with another kind does not replace the first") func kinds() {
    Counter(label: "c", dimensions: [], factory: registry).increment()
    Meter(label: "c", dimensions: [], factory: registry).set(9)
    #expect(registry.text() == "# TYPE c counter\nc 1\n")
  }
}
