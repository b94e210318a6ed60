// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A finger of `Fixtures`, and the images that a sensor makes of it. They are not of a human being.
struct SyntheticFinger {
  struct DamagedImageError: Error {}

  static let width = 272, height = 360

  private let columns: Int, rows: Int
  /// 1 for a ridge, smoothed over 3 by 3 pixels.
  private let ridges: [Double]

  init(_ name: String) throws {
    guard let url = Bundle.module.url(forResource: "Fixtures/\(name)", withExtension: "pbm") else {
      throw DamagedImageError()
    }
    let bytes = try Array(Data(contentsOf: url))
    let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 2, omittingEmptySubsequences: false)
    let size = lines.count == 3 ? lines[1].split(separator: UInt8(ascii: " ")) : []
    guard size.count == 2, let columns = Int(String(decoding: size[0], as: UTF8.self)),
      let rows = Int(String(decoding: size[1], as: UTF8.self)), lines[2].count == rows * columns / 8
    else { throw DamagedImageError() }
    (self.columns, self.rows) = (columns, rows)
    let packed = Array(lines[2])
    func bit(_ x: Int, _ y: Int) -> Double {
      let index = min(max(y, 0), rows - 1) * columns + min(max(x, 0), columns - 1)
      return Double(packed[index / 8] >> UInt8(7 - index % 8) & 1)
    }
    var ridges: [Double] = []
    for y in 0..<rows {
      for x in 0..<columns {
        var sum = 0.0
        for dy in -1...1 { for dx in -1...1 { sum += bit(x + dx, y + dy) } }
        ridges.append(sum / 9)
      }
    }
    self.ridges = ridges
  }

  private func ridge(_ x: Double, _ y: Double) -> Double {
    let (x, y) = (min(max(x, 0), Double(columns - 2)), min(max(y, 0), Double(rows - 2)))
    let (column, row) = (Int(x), Int(y))
    let (right, down) = (x - Double(column), y - Double(row))
    func value(_ dx: Int, _ dy: Int) -> Double { ridges[(row + dy) * columns + column + dx] }
    return (value(0, 0) * (1 - right) + value(1, 0) * right) * (1 - down)
      + (value(0, 1) * (1 - right) + value(1, 1) * right) * down
  }

  /// One impression, as a message to `virtual_image`: the size, then the pixels. Each number is another one: shifted by
  /// up to 9 pixels, turned by up to 7 degrees, and warped.
  func impression(_ number: Int) -> [UInt8] {
    func spread(_ salt: Int) -> Double { Double((number * 7919 + salt * 104_729) % 2003) / 1001.5 - 1 }
    let (shiftX, shiftY, angle) = (9 * spread(1), 9 * spread(2), 7 * spread(3) * .pi / 180)
    let (width, height) = (Double(Self.width), Double(Self.height))
    var bytes = [Int32(Self.width), Int32(Self.height)].flatMap { withUnsafeBytes(of: $0) { Array($0) } }
    for row in 0..<Self.height {
      for column in 0..<Self.width {
        let (x, y) = (Double(column) - width / 2, Double(row) - height / 2)
        guard pow(x / (width / 2 - 6), 2) + pow(y / (height / 2 - 6), 2) < 1 else {
          bytes.append(255)
          continue
        }
        let value = ridge(
          cos(angle) * x - sin(angle) * y + Double(columns) / 2 + shiftX + 1.5 * sin(y / 40 + Double(number)),
          sin(angle) * x + cos(angle) * y + Double(rows) / 2 + shiftY + 1.5 * cos(x / 37 + Double(number)))
        bytes.append(UInt8(255 * (1 - value)))
      }
    }
    return bytes
  }

  /// An image without a ridge.
  static var blank: [UInt8] {
    [Int32(width), Int32(height)].flatMap { withUnsafeBytes(of: $0) { Array($0) } }
      + [UInt8](repeating: 255, count: width * height)
  }
}
